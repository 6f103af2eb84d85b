/** What Linux says about processes, read from /proc: the only way to see a product's processes from outside. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const numeric = /^\d+$/

/** Reads a file of a process that may be gone by now. */
function look(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // The process ended between two looks.
    return ''
  }
}

interface ProcessState {
  parent: number
  /** `Z` is a zombie: ended, not yet collected by its parent. */
  state: string
}

function processState(pid: number): ProcessState | null {
  const text = look(`/proc/${pid}/stat`)
  const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return text === '' ? null : { state, parent: Number(parent) }
}

export function isAlive(pid: number): boolean {
  const found = processState(pid)
  return found !== null && found.state !== 'Z'
}

export const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => numeric.test(name))
    .map(Number)
    .filter((pid) => isAlive(pid) && processState(pid)?.parent === parent)

export function descendantsOf(pid: number): number[] {
  const children = childrenOf(pid)
  return [...children, ...children.flatMap(descendantsOf)]
}

/**
 * Whether any process listens on the TCP port. A killed process counts as ended when its first thread has ended, but
 * listens until its last one has: one that waits for the disk may take seconds.
 */
export function isListenedOn(port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return ['tcp', 'tcp6'].some((table) =>
    look(`/proc/net/${table}`)
      .split('\n')
      .some((line) => {
        const [, local = '', , state] = line.trim().split(/\s+/)
        return local.endsWith(suffix) && state === '0A'
      }),
  )
}

/** Whether the process listens on the TCP port. */
export function listensOn(pid: number, port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const inodes = ['tcp', 'tcp6'].flatMap((table) =>
    look(`/proc/${pid}/net/${table}`)
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(suffix) && state === '0A')
      .map((columns) => `socket:[${columns[9]}]`),
  )
  return openFiles(pid).some((target) => inodes.includes(target))
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${name}`)
      } catch {
        // Closed since it was listed.
        return ''
      }
    })
  } catch {
    // The process ended.
    return []
  }
}

/** The files mapped into the process: its executable, libraries, native addons. */
export const mappedFiles = (pid: number): string[] => [
  ...new Set(
    look(`/proc/${pid}/maps`)
      .split('\n')
      .map((line) => line.slice(73).trim())
      .filter((name) => name.startsWith('/')),
  ),
]

/** One variable of the environment the process was started with. */
export const environmentOf = (pid: number, name: string): string | undefined =>
  look(`/proc/${pid}/environ`)
    .split('\0')
    .find((entry) => entry.startsWith(`${name}=`))
    ?.slice(name.length + 1)

/** Memory in use, in bytes. */
export const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(look(`/proc/${pid}/status`))?.[1] ?? 0) * 1024

/** Processor time used so far, in seconds; the kernel counts it in hundredths. */
export const processorSeconds = (pid: number): number => secondsIn(pid, 11, 13)

/** The same, with that of its children which have ended. */
export const familySeconds = (pid: number): number => secondsIn(pid, 11, 15)

function secondsIn(pid: number, from: number, to: number): number {
  const text = look(`/proc/${pid}/stat`)
  const columns = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return columns.slice(from, to).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
}

/** How many files, sockets and the like it has open. */
export const openFileCount = (pid: number): number => openFiles(pid).length

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
