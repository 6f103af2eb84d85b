/**
 * What depends on the operating system. The product runs on Linux; on macOS and Windows, where developers try it, each
 * of these has a fallback or says that it is not there. `kill-with-parent.ts` is the one part apart from this, because
 * it loads a library.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const { platform } = process

/** Whether files have permission bits for others. Windows shows bits that mean nothing. */
export const filesHaveModes = platform !== 'win32'

/** The kernel's list of locks on files (proc_locks(5)); null where there is none. */
export const readLockTable = (): string | null => textOf('/proc/locks', 'latin1')

/** The files that a process has open; null where that is not known, as of another user's process. */
export function openFilesOf(pid: number): string[] | null {
  const directory = `/proc/${pid}/fd`
  try {
    return readdirSync(directory).flatMap((name) => linkOf(`${directory}/${name}`))
  } catch {
    // Another user's process, or a system without /proc.
    return null
  }
}

/** Milliseconds since the host was started, sleep included; null where the system does not say. */
export function readUptime(): number | null {
  const text = textOf('/proc/uptime')
  return text === null ? null : 1000 * Number(text.split(' ')[0])
}

/** Identifies the host's present boot; null where the system does not say. */
export const readBootId = (): string | null => textOf('/proc/sys/kernel/random/boot_id')?.trim() ?? null

/** Whether several processes can share one port: the kernel spreads connections over them (SO_REUSEPORT). */
export const canSharePort = platform === 'linux'

/**
 * Sends a signal to a process and, where there are groups of processes, to its whole group. Nothing happens where it
 * has ended already.
 */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(platform === 'win32' ? pid : -pid, signal)
  } catch {
    // All of it has ended already.
  }
}

function textOf(path: string, encoding: 'utf8' | 'latin1' = 'utf8'): string | null {
  try {
    return readFileSync(path, encoding)
  } catch {
    // A system without /proc.
    return null
  }
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    // Closed since it was listed.
    return []
  }
}
