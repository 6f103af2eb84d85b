/**
 * Which process holds the lock of a directory (lock.ts), by the kernel's own list: to try the lock would take it
 * from somebody who is about to start.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'

/** `unknown`: the system has no such list. */
export type Holder = { kind: 'free' } | { kind: 'held'; pid: number } | { kind: 'unknown' }

/** Looks for a lock of the file at `path`; a file that is not there is not held. */
export function lockHolder(path: string): Holder {
  let inode: number
  let real: string
  let list: string
  try {
    inode = statSync(path).ino
    real = realpathSync(path)
  } catch {
    // Nobody has ever started here, or nobody may look: nothing says that it is held.
    return { kind: 'free' }
  }
  try {
    list = readFileSync('/proc/locks', 'latin1')
  } catch {
    // A system without /proc.
    return { kind: 'unknown' }
  }
  const form = new RegExp(`^\\d+: POSIX +\\S+ +WRITE +(\\d+) +\\S+:${inode} `)
  const pids = list.split('\n').flatMap((line) => form.exec(line)?.[1] ?? [])
  const pid = pids.map(Number).find((each) => mayHold(each, real))
  return pid === undefined ? { kind: 'free' } : { kind: 'held', pid }
}

/** Other file systems have files of the same number: where the process's files can be seen, this one is among them. */
function mayHold(pid: number, path: string): boolean {
  const directory = `/proc/${pid}/fd`
  try {
    return readdirSync(directory).some((name) => linkOf(`${directory}/${name}`) === path)
  } catch {
    // Another user's process.
    return true
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // Closed since it was listed.
    return ''
  }
}
