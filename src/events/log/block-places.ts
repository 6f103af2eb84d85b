/**
 * What a block says of each of its records beside the text: when it happened, whether it was quarantined, and its tags.
 * A tag is 16 bits of the hash of a facet's value, so a query opens only blocks with a record that has the wanted ones,
 * and parses only such records. A wrong match is parsed and left out.
 *
 *   records (4 bytes), length of the quarantine notes (4 bytes), these as JSON, times, tags
 *
 * Times are differences to the one before, as variable-length numbers. Tags are first the number of tags of each record,
 * then the first tag of each, the second of each, …: what is alike stands together and compresses well.
 */
import { z } from 'zod'
import { type Quarantine, quarantineSchema } from './quarantine.ts'
import type { FacetName } from './record.ts'

export interface BlockPlaces {
  /** When each record happened, in milliseconds since the epoch; never later than it was received. */
  times: readonly number[]
  /** Records that were quarantined, by their place in the block. */
  quarantined: ReadonlyMap<number, Quarantine>
  tags: Tags
}

/** The tags of records: those of all, one record after another, and where those of each end. */
export interface Tags {
  all: readonly number[] | Uint16Array
  ends: readonly number[]
}

export function joinTags(lists: readonly Tags[]): Tags {
  const all: number[] = []
  const ends: number[] = []
  for (const list of lists) {
    for (const end of list.ends) ends.push(all.length + end)
    for (const tag of list.all) all.push(tag)
  }
  return { all, ends }
}

/** Those of one record. */
export const tagsOfRecord = (tags: readonly number[]): Tags => ({ all: tags, ends: [tags.length] })

export const tagOf = (facet: FacetName, value: string): number => Bun.hash.crc32(`${facet}:${value}`) & 0xffff

/** Of a record with more tags these are kept, and it is always opened. */
export const mostTags = 255

/** Whether a record may have one of the tags of each list. */
export function mayHaveTags({ all, ends }: Tags, record: number, wanted: readonly (readonly number[])[]): boolean {
  const from = record === 0 ? 0 : (ends[record - 1] ?? 0)
  const end = ends[record] ?? 0
  if (end - from >= mostTags) return true
  for (const some of wanted) if (!hasOne(all, from, end, some)) return false
  return true
}

function hasOne(all: Tags['all'], from: number, end: number, some: readonly number[]): boolean {
  for (let at = from; at < end; at += 1) {
    const tag = all[at]
    if (tag !== undefined && some.includes(tag)) return true
  }
  return false
}

const headBytes = 8
const bytesOfTime = 8
const notesSchema = z.array(z.tuple([z.number().int().min(0), quarantineSchema]))

export function writePlaces({ times, quarantined, tags: { all, ends } }: BlockPlaces): Buffer {
  const notes = quarantined.size === 0 ? '' : JSON.stringify([...quarantined])
  const notesBytes = Buffer.byteLength(notes)
  const bytes = Buffer.allocUnsafe(headBytes + notesBytes + times.length * (bytesOfTime + 1) + all.length * 2)
  bytes.writeUInt32LE(times.length, 0)
  bytes.writeUInt32LE(notesBytes, 4)
  bytes.write(notes, headBytes)
  let at = headBytes + notesBytes
  let before = 0
  for (const time of times) {
    // Even for later, odd for earlier.
    let rest = time >= before ? (time - before) * 2 : (before - time) * 2 - 1
    before = time
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) + 128
    bytes[at++] = rest
  }
  let most = 0
  for (const [record, end] of ends.entries()) {
    const count = end - (ends[record - 1] ?? 0)
    most = Math.max(most, count)
    bytes[at++] = count
  }
  for (let slot = 0; slot < most; slot += 1) {
    let from = 0
    for (const end of ends) {
      if (from + slot < end) at = bytes.writeUInt16LE(all[from + slot] ?? 0, at)
      from = end
    }
  }
  return bytes.subarray(0, at)
}

/** Throws where the bytes are not of this form. */
export function readPlaces(bytes: Buffer): BlockPlaces {
  const records = bytes.readUInt32LE(0)
  const notesBytes = bytes.readUInt32LE(4)
  const notes = bytes.toString('utf8', headBytes, headBytes + notesBytes)
  const quarantined = new Map(notes === '' ? [] : notesSchema.parse(JSON.parse(notes)))
  let at = headBytes + notesBytes
  const times: number[] = []
  for (let time = 0; times.length < records; times.push(time)) {
    let number = 0
    let scale = 1
    let byte = bytes.readUInt8(at++)
    for (; byte >= 128; byte = bytes.readUInt8(at++)) {
      number += (byte - 128) * scale
      scale *= 128
    }
    number += byte * scale
    time += number % 2 === 0 ? number / 2 : -(number + 1) / 2
  }
  const counts = bytes.subarray(at, at + records)
  at += records
  const ends: number[] = []
  let total = 0
  let most = 0
  for (const count of counts) {
    total += count
    most = Math.max(most, count)
    ends.push(total)
  }
  if (ends.length !== records || bytes.length !== at + total * 2)
    throw new RangeError('The tags of a block are cut off')
  const all = new Uint16Array(total)
  for (let slot = 0; slot < most; slot += 1) {
    let from = 0
    for (const end of ends) {
      if (from + slot < end) {
        all[from + slot] = (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 256
        at += 2
      }
      from = end
    }
  }
  return { times, quarantined, tags: { all, ends } }
}
