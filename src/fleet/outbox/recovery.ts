/**
 * Reads an outbox as a stopped process left it. The first record of the newest segment names the oldest segment that
 * is still needed (`needed_from`). Records are read from there on; of older segments only the first record is read.
 *
 * Reading stops at the first bad record. What follows was not committed, or cannot be told from what was not, so it is
 * removed and reported. Unwritten space is zeros up to the segment's end.
 */
import { closeSync, openSync, readFileSync, readSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import { firstPiece, isPacked, readPiece, readRecords } from './packed.ts'
import {
  bootRecordSchema,
  decodeRecord,
  type OutboxRecord,
  parseEventHead,
  parseOpenRecord,
  type RevocationRecord,
  recordBytes,
  recordKinds,
  revocationRecordSchema,
  type SegmentRecord,
  type StatePosition,
  segmentRecordSchema,
  usesRecordSchema,
} from './record.ts'
import { listSegments, type Segment, segmentPath, type Write, writeZeros, zeros } from './segment.ts'

export interface RecoveredOutbox {
  segments: Segment[]
  /** The last record's number, and the last event's number in the worker's chain. */
  seq: number
  n: number
  /** Exchanges without an outcome: the outcome to write, and the segment of their open record. */
  open: Map<string, { interrupted: Buffer; segment: Segment }>
  revocations: RevocationRecord[]
  acknowledged: StatePosition | null
  bootId: string | null
  /** The last process that wrote here, and the first since which nothing can be missing. */
  run: number
  knownFrom: number
  /** Slots of limits a minute in the order of use, except those of segments that need not be read. */
  uses: RecordedUse[]
  /** Whether the last process closed the outbox. Otherwise it was killed, or the host crashed. */
  closed: boolean
  dropped: { segment: number; offset: number; bytes: number; segments: number } | null
}

interface Found {
  segment: Segment
  head: SegmentRecord
}

/** Reads the outbox of a directory and removes what cannot be trusted. */
export function recoverOutbox(directory: string, write: Write): RecoveredOutbox {
  const { found, untrusted } = readHeads(directory)
  let dropped: RecoveredOutbox['dropped'] = null
  const [first] = untrusted
  if (first !== undefined) {
    dropped = { segment: first, offset: 0, bytes: 0, segments: untrusted.length }
    for (const later of untrusted.toReversed()) rmSync(segmentPath(directory, later))
  }
  for (;;) {
    const { recovered, bad } = readFrom(found)
    if (bad === null) return { ...recovered, dropped }
    dropped = cut(found, bad, write)
    // A segment whose first record does not follow the earlier ones is removed as a whole.
    const keep = bad.offset === 0 ? bad.at : bad.at + 1
    for (const later of found.splice(keep).reverse()) rmSync(later.segment.path)
  }
}

/**
 * What a recovery would find, without a change: the last event's number, the number of exchanges without an outcome,
 * and the point from which it would drop records. Use it only while no process writes to the outbox.
 */
export function inspectOutbox(directory: string): {
  events: number
  open: number
  bytes: number
  damage: { segment: number; offset: number } | null
} {
  const { found, untrusted } = readHeads(directory)
  const { recovered, bad } = readFrom(found)
  const place = bad === null ? untrusted[0] : found[bad.at]?.segment.index
  return {
    events: recovered.n,
    open: recovered.open.size,
    bytes: found.reduce((sum, { segment }) => sum + segment.size, 0),
    damage: place === undefined ? null : { segment: place, offset: bad?.offset ?? 0 },
  }
}

/** The segments that follow each other, and the indexes of the rest. */
function readHeads(directory: string): { found: Found[]; untrusted: number[] } {
  const found: Found[] = []
  const indexes = listSegments(directory)
  for (const index of indexes) {
    const segment = readHead(directory, index)
    const successive = found.length === 0 || index === (found.at(-1)?.segment.index ?? 0) + 1
    if (segment === null || !successive) break
    found.push(segment)
  }
  return { found, untrusted: indexes.slice(found.length) }
}

function readHead(directory: string, index: number): Found | null {
  const path = segmentPath(directory, index)
  const { packed, bytes } = readStart(path)
  const record = decodeRecord(bytes, 0)
  if (typeof record === 'string' || record.kind !== recordKinds.segment) return null
  const head = segmentRecordSchema.parse(JSON.parse(record.json.toString()))
  const { size, mtimeMs } = statSync(path)
  const state = { committed: 0, before: head.n, last: head.n, open: 0, revocations: [], coldAt: 0, writtenAt: mtimeMs }
  return { segment: { index, path, size, packed, fd: null, ...state }, head }
}

/** The first bytes of a segment's records. */
function readStart(path: string): { packed: boolean; bytes: Buffer } {
  const fd = openSync(path, 'r')
  try {
    if (isPacked(fd)) {
      const piece = readPiece(fd, firstPiece)
      return { packed: true, bytes: piece === null || piece === 'bad' ? Buffer.alloc(0) : piece.records }
    }
    const bytes = Buffer.alloc(recordBytes)
    return { packed: false, bytes: bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)) }
  } finally {
    closeSync(fd)
  }
}

interface Bad {
  /** Position in the list of segments, and the offset of the first bad record. */
  at: number
  offset: number
}

function readFrom(found: readonly Found[]): { recovered: RecoveredOutbox; bad: Bad | null } {
  const recovered: RecoveredOutbox = {
    segments: found.map(({ segment, head }) => ({
      ...segment,
      before: head.n,
      last: head.n,
      open: 0,
      revocations: [],
    })),
    seq: 0,
    n: found[0]?.head.n ?? 0,
    open: new Map(),
    revocations: [],
    acknowledged: null,
    bootId: null,
    run: 0,
    knownFrom: 0,
    uses: [],
    closed: false,
    dropped: null,
  }
  const from = Math.max(
    0,
    found.findIndex(({ segment }) => segment.index >= (found.at(-1)?.head.needed_from ?? 0)),
  )
  for (const [at, segment] of recovered.segments.entries()) {
    const next = found[at + 1]
    if (at < from) {
      segment.last = next?.head.n ?? segment.last
      segment.committed = segment.size
      continue
    }
    const end = readSegment(recovered, segment, at === from)
    if (end.bad) return { recovered, bad: { at, offset: end.offset } }
  }
  return { recovered, bad: null }
}

/** Applies the records of one segment; `first` if no record was read before. */
function readSegment(recovered: RecoveredOutbox, segment: Segment, first: boolean): { bad: boolean; offset: number } {
  const { bytes, bad } = readRecords(segment.path)
  let at = 0
  for (;;) {
    const record = decodeRecord(bytes, at)
    if (record === 'unwritten') {
      segment.committed = at
      return { bad: bad || at === 0 || !isZero(bytes.subarray(at)), offset: at }
    }
    const successive = record !== 'bad' && ((first && at === 0) || record.seq === recovered.seq + 1)
    if (record === 'bad' || !successive) return { bad: true, offset: at }
    recovered.seq = record.seq
    apply(recovered, segment, record)
    at = record.end
  }
}

function apply(recovered: RecoveredOutbox, segment: Segment, { kind, json }: OutboxRecord): void {
  recovered.closed = kind === recordKinds.closed
  if (kind === recordKinds.event) {
    const { n, closes } = parseEventHead(json)
    recovered.n = n
    segment.last = n
    const opened = closes === null ? undefined : recovered.open.get(closes)
    if (closes !== null && opened !== undefined) {
      opened.segment.open--
      recovered.open.delete(closes)
    }
    return
  }
  if (kind === recordKinds.open) {
    const { exchange, interrupted } = parseOpenRecord(json)
    segment.open++
    recovered.open.set(exchange, { interrupted, segment })
    return
  }
  const content: unknown = JSON.parse(json.toString())
  if (kind === recordKinds.segment) {
    const head = segmentRecordSchema.parse(content)
    recovered.bootId = head.boot_id
    recovered.acknowledged = head.acknowledged
    recovered.n = head.n
    recovered.run = head.run
    recovered.knownFrom = head.known_from
  } else if (kind === recordKinds.revocation) {
    const revocation = revocationRecordSchema.parse(content)
    recovered.acknowledged = revocation.acknowledged
    if (revocation.hashes.length > 0) {
      recovered.revocations.push(revocation)
      segment.revocations.push(revocation.position)
    }
  } else if (kind === recordKinds.uses) {
    const { uses } = usesRecordSchema.parse(content)
    recovered.uses.push(...uses)
    for (const [, until] of uses) segment.coldAt = Math.max(segment.coldAt, until)
  } else {
    const started = bootRecordSchema.parse(content)
    recovered.bootId = started.boot_id
    recovered.run = started.run
    recovered.knownFrom = started.known_from
  }
}

/** Compares whole blocks: byte by byte a start would take tens of milliseconds for each segment. */
function isZero(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += zeros.length) {
    const block = bytes.subarray(at, at + zeros.length)
    if (!block.equals(zeros.subarray(0, block.length))) return false
  }
  return true
}

/** Zeroes a segment from its first bad record on, so that writing can continue there. A packed one becomes plain. */
function cut(found: readonly Found[], { at, offset }: Bad, write: Write): NonNullable<RecoveredOutbox['dropped']> {
  const later = found.slice(at + 1)
  const segment = found[at]?.segment
  if (segment === undefined) throw new RangeError('No such segment')
  const bytes = readFileSync(segment.path)
  const left = bytes.subarray(offset).findLastIndex((byte) => byte !== 0) + 1
  if (segment.packed) {
    writeFileSync(`${segment.path}.new`, readRecords(segment.path).bytes.subarray(0, offset), { mode: 0o600 })
    renameSync(`${segment.path}.new`, segment.path)
    segment.packed = false
    segment.size = Math.max(offset, bytes.length)
  }
  const fd = openSync(segment.path, 'r+')
  writeZeros(write, fd, offset, Math.max(segment.size, bytes.length))
  closeSync(fd)
  return { segment: segment.index, offset, bytes: left, segments: later.length }
}
