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
  /** The tags of each record. */
  tags: readonly (readonly number[])[]
}

export const tagOf = (facet: FacetName, value: string): number => Bun.hash.crc32(`${facet}:${value}`) & 0xffff

/** A record has fewer tags; it is always opened where it would have more. */
const mostTags = 255

/** Whether a record may have one of the tags of each list. */
export const mayHaveTags = (tags: readonly number[], wanted: readonly (readonly number[])[]): boolean =>
  tags.length === mostTags || wanted.every((some) => some.some((tag) => tags.includes(tag)))

const headBytes = 8
const bytesOfTime = 8
const notesSchema = z.array(z.tuple([z.number().int().min(0), quarantineSchema]))

export function writePlaces({ times, quarantined, tags }: BlockPlaces): Buffer {
  const notes = quarantined.size === 0 ? '' : JSON.stringify([...quarantined])
  const notesBytes = Buffer.byteLength(notes)
  const kept = tags.map((some) => some.slice(0, mostTags))
  const tagCount = kept.reduce((sum, { length }) => sum + length, 0)
  const bytes = Buffer.allocUnsafe(headBytes + notesBytes + times.length * (bytesOfTime + 1) + tagCount * 2)
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
  for (const { length } of kept) bytes[at++] = length
  for (let slot = 0, written = 0; written < tagCount; slot += 1) {
    for (const some of kept) {
      const tag = some[slot]
      if (tag === undefined) continue
      at = bytes.writeUInt16LE(tag, at)
      written += 1
    }
  }
  return bytes.subarray(0, at)
}

/** Throws where the bytes are not of this form. */
export function readPlaces(bytes: Buffer): BlockPlaces {
  const records = bytes.readUInt32LE(0)
  const notesBytes = bytes.readUInt32LE(4)
  if (records > bytes.length) throw new RangeError('A block has more records than bytes')
  const notes = bytes.toString('utf8', headBytes, headBytes + notesBytes)
  const quarantined = new Map(notes === '' ? [] : notesSchema.parse(JSON.parse(notes)))
  let at = headBytes + notesBytes
  let time = 0
  const times = Array.from({ length: records }, () => {
    let number = 0
    let scale = 1
    for (let byte = bytes.readUInt8(at++); ; byte = bytes.readUInt8(at++)) {
      number += (byte & 127) * scale
      if (byte < 128) break
      scale *= 128
    }
    time += number % 2 === 0 ? number / 2 : -(number + 1) / 2
    return time
  })
  const counts = Array.from({ length: records }, () => bytes.readUInt8(at++))
  const tags: number[][] = counts.map(() => [])
  for (let slot = 0; at < bytes.length; slot += 1) {
    for (let record = 0; record < records; record += 1) {
      if (slot >= (counts[record] ?? 0)) continue
      tags[record]?.push(bytes.readUInt16LE(at))
      at += 2
    }
    if (slot > mostTags) throw new RangeError('A block has more tags than it says')
  }
  return { times, quarantined, tags }
}
