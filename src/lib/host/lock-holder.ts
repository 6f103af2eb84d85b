/**
 * Finds the process that holds the lock of a directory (lock.ts), in the kernel's own list: trying the lock would
 * take it from a process that is about to start.
 */
import { realpathSync, statSync } from 'node:fs'
import { openFilesOf, readLockTable } from './platform.ts'

/** `unknown`: the system has no such list. */
export type Holder = { kind: 'free' } | { kind: 'held'; pid: number } | { kind: 'unknown' }

/** Looks for a lock of the file at `path`; a missing file is not held. */
export function lockHolder(path: string): Holder {
  let inode: number
  let real: string
  try {
    inode = statSync(path).ino
    real = realpathSync(path)
  } catch {
    // No process has ever started here, or the directory is not readable: there is no sign of a holder.
    return { kind: 'free' }
  }
  const list = readLockTable()
  if (list === null) return { kind: 'unknown' }
  const form = new RegExp(`^\\d+: POSIX +\\S+ +WRITE +(\\d+) +\\S+:${inode} `)
  const pids = list.split('\n').flatMap((line) => form.exec(line)?.[1] ?? [])
  const pid = pids.map(Number).find((each) => mayHold(each, real))
  return pid === undefined ? { kind: 'free' } : { kind: 'held', pid }
}

/**
 * Other file systems have files of the same number: if the process's files are visible, this one must be among them.
 */
const mayHold = (pid: number, path: string): boolean => openFilesOf(pid)?.includes(path) ?? true
