/**
 * Segment files to which nothing more is written are packed: the same records in the same order, compressed in pieces
 * of whole records, each with its length and its CRC32 before it. A packed file takes the name of the plain
 * one by one rename, so that a kill at any time leaves one of the two. Its first four bytes are no record's length. The
 * first record, which a start reads of each segment, is a piece by itself: damage behind it concerns this segment only.
 */
import { closeSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import { headerBytes } from './record.ts'
import { zeros } from './segment.ts'

const mark = Buffer.from('ffffffff', 'hex')
/** Of a piece: its length and its checksum. */
const headBytes = 8
const lengthBytes = 4
/** The most bytes of records in a piece: several of the largest. So a reader needs as much memory, wherever it begins. */
export const pieceBytes = zeros.length

/**
 * Packs the records in the first `length` bytes of a segment file, off the thread; the time of the file stays. What
 * follows them there must be unwritten.
 * `mayReplace` is asked in the tick in which the file is replaced. Returns the new size; null if nothing was replaced.
 */
export async function packFile(path: string, length: number, mayReplace: () => boolean): Promise<number | null> {
  const target = `${path}.new`
  try {
    const size = await writePacked(path, target, length)
    if (mayReplace()) {
      renameSync(target, path)
      return size
    }
  } catch (error) {
    rmSync(target, { force: true })
    throw error
  }
  rmSync(target, { force: true })
  return null
}

async function writePacked(path: string, target: string, length: number): Promise<number> {
  await using plain = await open(path, 'r')
  await using packed = await open(target, 'w', 0o600)
  await packed.write(mark)
  let size = mark.length
  const bytes = Buffer.allocUnsafe(pieceBytes)
  for (let at = 0; at < length; ) {
    const { bytesRead } = await plain.read(bytes, 0, Math.min(bytes.length, length - at), at)
    const records = wholeRecords(bytes.subarray(0, bytesRead), at === 0 ? 1 : Number.POSITIVE_INFINITY)
    if (records.length === 0) {
      if (isUnwritten(bytes.subarray(0, bytesRead))) break
      throw new RangeError(`${path} holds no whole record at ${at}`)
    }
    size += await writePiece(packed, records)
    at += records.length
  }
  const { atime, mtime } = await plain.stat()
  await packed.utimes(atime, mtime)
  await packed.datasync()
  return size
}

async function writePiece(packed: FileHandle, records: Buffer): Promise<number> {
  const frame = await Bun.zstdCompress(records, { level: 1 })
  const piece = Buffer.allocUnsafe(headBytes + frame.length)
  piece.writeUInt32BE(frame.length)
  piece.writeUInt32BE(Bun.hash.crc32(frame), lengthBytes)
  frame.copy(piece, headBytes)
  for (let done = 0; done < piece.length; ) done += (await packed.write(piece, done)).bytesWritten
  return piece.length
}

/** The whole records at the start of these bytes, at most so many. */
function wholeRecords(bytes: Buffer, most: number): Buffer {
  let end = 0
  for (let count = 0; count < most && end + headerBytes <= bytes.length; count++) {
    const length = bytes.readUInt32BE(end)
    if (length === 0 || end + headerBytes + length > bytes.length) break
    end += headerBytes + length
  }
  return bytes.subarray(0, end)
}

/** Of a segment that a start did not read, only its size is known: unwritten space follows its records. */
const isUnwritten = (bytes: Buffer): boolean => bytes.equals(zeros.subarray(0, bytes.length))

/** Whether a segment file is packed, by its first bytes. */
export function isPacked(fd: number): boolean {
  const bytes = Buffer.alloc(mark.length)
  return readSync(fd, bytes, 0, bytes.length, 0) === bytes.length && bytes.equals(mark)
}

/** Where the first piece of a packed file begins. */
export const firstPiece = mark.length

/** A piece of a packed file: its records, and where the next one begins. Null at the end of the file. */
export function readPiece(fd: number, at: number): { records: Buffer; next: number } | 'bad' | null {
  const head = Buffer.alloc(headBytes)
  const found = readSync(fd, head, 0, headBytes, at)
  if (found === 0) return null
  const length = head.readUInt32BE()
  // What does not compress grows a little.
  if (found < headBytes || length > 2 * pieceBytes) return 'bad'
  const frame = Buffer.alloc(length)
  if (readSync(fd, frame, 0, length, at + headBytes) < length) return 'bad'
  if (Bun.hash.crc32(frame) !== head.readUInt32BE(lengthBytes)) return 'bad'
  try {
    const records = zstdDecompressSync(frame, { maxOutputLength: pieceBytes })
    return { records, next: at + headBytes + length }
  } catch {
    // It is no frame.
    return 'bad'
  }
}

/** The records of a segment file, plain or packed: up to the first piece that is bad, if one is. */
export function readRecords(path: string): { bytes: Buffer; bad: boolean } {
  const fd = openSync(path, 'r')
  try {
    if (!isPacked(fd)) return { bytes: readFileSync(path), bad: false }
    const pieces: Buffer[] = []
    for (let at = firstPiece; ; ) {
      const piece = readPiece(fd, at)
      if (piece === null || piece === 'bad') return { bytes: Buffer.concat(pieces), bad: piece === 'bad' }
      pieces.push(piece.records)
      at = piece.next
    }
  } finally {
    closeSync(fd)
  }
}
