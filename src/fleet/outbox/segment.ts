/**
 * The segment files of an outbox: `00000001.segment`, … A segment is allocated by writing zeros to a `.new` file, so
 * that its space exists before it is needed. It gets its name when it becomes the current one.
 */
import { closeSync, fdatasync, openSync, readdirSync, renameSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { StatePosition } from './record.ts'

/** Writes bytes to a file, like `fs.writeSync`. Tests make it fail. */
export type Write = (fd: number, bytes: Uint8Array, offset: number, length: number, position: number) => number

export interface Segment {
  index: number
  path: string
  size: number
  /** Whether the file is packed (packed.ts). */
  packed: boolean
  /** Open for writing while current or not yet synced; null otherwise. */
  fd: number | null
  /** The offset up to which records are committed, in the plain file. */
  committed: number
  /** The number of the last event before this segment, and of the last in or before it. */
  before: number
  last: number
  /** Exchanges opened here that have no outcome yet. */
  open: number
  /** Revocations recorded here that the state has not reached. */
  revocations: StatePosition[]
  /** When the slots recorded here as used are cold, by the host's time. */
  coldAt: number
  /** When the last record was written, milliseconds since the epoch. */
  writtenAt: number
}

export interface Spare {
  path: string
  size: number
  fd: number
}

export const zeros = new Uint8Array(256 * 1024)

export const segmentPath = (directory: string, index: number): string =>
  join(directory, `${String(index).padStart(8, '0')}.segment`)

/** The indexes of the segments in a directory, ascending. */
export const listSegments = (directory: string): number[] =>
  readdirSync(directory)
    .flatMap((name) => /^(\d{8})\.segment$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((one, other) => one - other)

/** Writes a whole range, in as many writes as needed. */
export function writeWhole(write: Write, fd: number, bytes: Uint8Array, length: number, position: number): void {
  for (let done = 0; done < length; ) done += write(fd, bytes, done, length - done, position + done)
}

/** Fills a range with zeros, which also allocates it. */
export function writeZeros(write: Write, fd: number, from: number, to: number): void {
  for (let at = from; at < to; ) {
    const length = Math.min(zeros.length, to - at)
    writeWhole(write, fd, zeros, length, at)
    at += length
  }
}

/** Allocates a segment at once. Leaves nothing behind if the disk is full. */
export function allocateNow(path: string, size: number, write: Write): Spare {
  const fd = openSync(path, 'w', 0o600)
  try {
    writeZeros(write, fd, 0, size)
    return { path, size, fd }
  } catch (error) {
    closeSync(fd)
    rmSync(path, { force: true })
    throw error
  }
}

/** Allocates a segment off the thread. */
export async function allocateEarly(path: string, size: number): Promise<Spare> {
  const handle = await open(path, 'w', 0o600)
  try {
    for (let at = 0; at < size; ) {
      const { bytesWritten } = await handle.write(zeros, 0, Math.min(zeros.length, size - at), at)
      at += bytesWritten
    }
  } catch (error) {
    await handle.close()
    rmSync(path, { force: true })
    throw error
  }
  await handle.close()
  return { path, size, fd: openSync(path, 'r+') }
}

/** Renames an allocated file to a segment's name. */
export function nameSegment(spare: Spare, directory: string, index: number): string {
  const path = segmentPath(directory, index)
  renameSync(spare.path, path)
  return path
}

/** fdatasync off the thread. */
export const syncData = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())))

export const systemWrite: Write = (fd, bytes, offset, length, position) =>
  writeSync(fd, bytes, offset, length, position)

/** How much space the disk has for unprivileged users. */
export function systemFreeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}
