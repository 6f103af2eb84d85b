/**
 * A record of the outbox (fleet/outbox/README.md): `u32 length, u32 crc32, u64 seq, body`, big-endian. The length
 * counts the body, the checksum covers seq and body, and a body is one kind byte and JSON. A length of 0 is unwritten
 * space.
 */
import { z } from 'zod'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import { eventBytes, mostEventBytes } from './event-size.ts'

export const recordKinds = {
  /** The first record of a segment: a summary of the earlier ones. */
  segment: 1,
  /** An exchange before its dispatch, with the outcome that a restart writes if none follows. */
  open: 2,
  /** One record of the worker's chain: an exchange with its attempts and decisions, or another event. */
  event: 3,
  /** Revoked tokens ahead of the state, and the version up to which all revocations are durable. */
  revocation: 4,
  /** A process started writing here. */
  started: 5,
  /** The process that wrote here ended cleanly. It wrote nothing after this. */
  closed: 6,
  /** Slots of limits a minute that were used, or corrections of a use (usage/rate/rate.ts). */
  uses: 7,
} as const
export type RecordKind = (typeof recordKinds)[keyof typeof recordKinds]

export const recordOverhead = 17
/** Length, checksum and number. */
export const headerBytes = 16
const beforeNumber = '{"n":'
const beforeBody = '"body":'
const beforeInterrupted = '"interrupted":'
const zero = 0x30
const closingBrace = 0x7d

/** More than is written around the JSON of a record of the event log. */
const aroundBytes = 512
/** The most bytes of a record that holds a record of the event log with so many attempts and decisions. */
export const recordBytesOf = (innerEvents: number): number => eventBytes(innerEvents) + aroundBytes
/** The most bytes of any other record, and of an event by itself. */
export const recordBytes = recordBytesOf(0)
/** The largest record. As much space may stay unused at a segment's end. */
export const mostRecordBytes = mostEventBytes + aroundBytes

/** A point in a history of the state. Versions of different histories cannot be compared. */
export const positionSchema = z.object({ history: z.string(), version: z.number().int() })
export type StatePosition = z.infer<typeof positionSchema>

const runFields = {
  run: z.number().int().default(0).describe('Grows with each process that writes here'),
  known_from: z.number().int().default(0).describe('The first run of which nothing can be missing'),
}

export const segmentRecordSchema = z.object({
  boot_id: z.string(),
  ...runFields,
  n: z.number().int().describe('The number of the last event before this segment'),
  needed_from: z.number().int().describe('The oldest segment with an open exchange or a revocation still in force'),
  acknowledged: positionSchema.nullable(),
})
export type SegmentRecord = z.infer<typeof segmentRecordSchema>

const openHeadSchema = z.object({ exchange: z.string() })

export const revocationRecordSchema = z.object({
  position: positionSchema,
  since: z.number().int().optional().describe('Each of them changed after this version; the one before, where absent'),
  acknowledged: positionSchema.nullable(),
  hashes: z.array(z.string()).readonly(),
})
export type RevocationRecord = z.infer<typeof revocationRecordSchema>

/** How many token hashes fit one record in any case. */
const hashesPerRecord = 50

/** The records of one revocation. Only the last acknowledges, so that a torn batch acknowledges nothing. */
export function revocationRecords({
  position,
  since,
  hashes,
  acknowledged,
  before,
}: RevocationRecord & { before: StatePosition | null }) {
  const records: RevocationRecord[] = []
  for (let at = 0; at === 0 || at < hashes.length; at += hashesPerRecord) {
    const last = at + hashesPerRecord >= hashes.length
    const some = hashes.slice(at, at + hashesPerRecord)
    records.push({ position, since, acknowledged: last ? acknowledged : before, hashes: some })
  }
  return records
}

export const bootRecordSchema = z.object({ boot_id: z.string(), ...runFields })

export type BootRecord = z.infer<typeof bootRecordSchema>
/** Used if the kernel does not identify the host's boot: every start then counts as a new boot. */
export const unknownBoot = 'unknown'

export const usesRecordSchema = z.object({
  uses: z.array(z.tuple([z.string(), z.number().int(), z.number().int()])),
})

/** How many uses fit one record in any case. */
const usesPerRecord = 20

const noRecords: readonly string[] = []

/** Uses in as many records as they need. */
export function usesRecords(uses: readonly RecordedUse[]): readonly string[] {
  if (uses.length === 0) return noRecords
  const records: string[] = []
  for (let at = 0; at < uses.length; at += usesPerRecord) {
    records.push(JSON.stringify({ uses: uses.slice(at, at + usesPerRecord) }))
  }
  return records
}

/** Writes a record into `target` at `at`, which must have room, and returns the offset after it. */
export function encodeRecord(target: Buffer, at: number, seq: number, kind: RecordKind, json: string): number {
  const start = at + recordOverhead
  return endRecord(target, at, seq, kind, start + target.write(json, start, 'utf8'))
}

/**
 * Like `encodeRecord`, for an object made of `head`, an event's JSON and a brace, without copying them into one text
 * first. The event ends one byte before the returned offset.
 */
export function encodeAround(
  target: Buffer,
  at: number,
  { seq, kind, head, body }: { seq: number; kind: RecordKind; head: string; body: string },
): { bodyStart: number; end: number } {
  const start = at + recordOverhead
  const bodyStart = start + target.write(head, start, 'utf8')
  const bodyEnd = bodyStart + target.write(body, bodyStart, 'utf8')
  target[bodyEnd] = closingBrace
  return { bodyStart, end: endRecord(target, at, seq, kind, bodyEnd + 1) }
}

/** The part of an open record before the interrupted outcome. */
export const openHead = (exchange: string): string => `{"exchange":${JSON.stringify(exchange)},${beforeInterrupted}`

/** The part of an event record before the body, so that the body can be cut out byte for byte. */
export const eventHead = (n: number, closes: string | null): string =>
  `${beforeNumber}${n},"closes":${JSON.stringify(closes)},${beforeBody}`

export interface EventRecord {
  /** The event's number in the worker's chain. */
  n: number
  /** The exchange whose outcome this is, if it is one. */
  closes: string | null
  /** The event's exact JSON. */
  body: string
}

/** Writes the header of a record whose JSON ends at `end`. */
function endRecord(target: Buffer, at: number, seq: number, kind: RecordKind, end: number): number {
  target.writeUInt32BE(end - at - headerBytes, at)
  target.writeUInt32BE(Math.floor(seq / 2 ** 32), at + 8)
  target.writeUInt32BE(seq % 2 ** 32, at + 12)
  target[at + headerBytes] = kind
  target.writeUInt32BE(Bun.hash.crc32(target.subarray(at + 8, end)), at + 4)
  return end
}

export interface OutboxRecord {
  seq: number
  kind: number
  json: Buffer
  /** The offset after this record. */
  end: number
}

/** Reads the record at `at`: `unwritten` if none was begun, `bad` if length, checksum or file do not agree. */
export function decodeRecord(bytes: Buffer, at: number): OutboxRecord | 'unwritten' | 'bad' {
  if (at + headerBytes > bytes.length) return 'unwritten'
  const length = bytes.readUInt32BE(at)
  if (length === 0) return 'unwritten'
  const end = at + headerBytes + length
  if (end > bytes.length) return 'bad'
  if (Bun.hash.crc32(bytes.subarray(at + 8, end)) !== bytes.readUInt32BE(at + 4)) return 'bad'
  const seq = bytes.readUInt32BE(at + 8) * 2 ** 32 + bytes.readUInt32BE(at + 12)
  return { seq, kind: bytes[at + headerBytes] ?? 0, json: bytes.subarray(at + recordOverhead, end), end }
}

const recordHead = z.object({ n: z.number().int(), closes: z.string().nullable() })

/** Parses the JSON of an event's record. */
export const parseEventRecord = (json: Buffer): EventRecord => ({
  ...parseEventHead(json),
  body: eventBody(json).toString(),
})

/** The head of an event record. Only this is parsed, since a restart reads very many. */
export const parseEventHead = (json: Buffer): Omit<EventRecord, 'body'> =>
  recordHead.parse(JSON.parse(`${json.toString('utf8', 0, json.indexOf(beforeBody) - 1)}}`))

/** Parses an open record, without its outcome. */
export function parseOpenRecord(json: Buffer): { exchange: string; interrupted: Buffer } {
  const outcome = json.indexOf(beforeInterrupted)
  const { exchange } = openHeadSchema.parse(JSON.parse(`${json.toString('utf8', 0, outcome - 1)}}`))
  return { exchange, interrupted: json.subarray(outcome + beforeInterrupted.length, json.length - 1) }
}

/** The bytes of an event record's body, without copying or reading them. */
export const eventBody = (json: Buffer): Buffer =>
  json.subarray(json.indexOf(beforeBody) + beforeBody.length, json.length - 1)

/** The number of an event record, read without parsing or copying it. */
export function eventNumber(json: Buffer): number {
  let n = 0
  for (let at = beforeNumber.length; ; at++) {
    const digit = (json[at] ?? 0) - zero
    if (digit < 0 || digit > 9) return n
    n = 10 * n + digit
  }
}
