/**
 * The stored form of segments: compressed parts, each with a checksum of its own (zstd's XXH64), so that a part in which
 * a bit was flipped is damaged and never read as something else. Decoders give null for what is damaged.
 */
import { promisify } from 'node:util'
import { constants, type ZstdOptions, zstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { z } from 'zod'
import { bytesOfHashes } from './id-hashes.ts'
import { quarantineSchema } from './quarantine.ts'
import { facetNames } from './record.ts'
import {
  addFacet,
  type Block,
  type ChainPart,
  type Facets,
  lineFeed,
  type Run,
  recordBytes,
  type Segment,
} from './segment.ts'

/** More bytes of a header, or of the places of a block, are damage or a compression bomb. */
const mostHeaderBytes = 2 ** 26

export interface StoredBlock {
  records: number
  /** The length of its text. */
  bytes: number
  first_at: number
  last_at: number
  /** When each of its records happened, and which were quarantined. */
  places: Uint8Array
  body: Uint8Array
}

export interface StoredSegment {
  records: number
  receivedAt: number
  header: Uint8Array
  ids: Uint8Array
  facets: Facets
  chains: readonly ChainPart[]
  blocks: StoredBlock[]
}

const runSchema = z.tuple([z.string(), z.number().int().min(1), z.number().int().min(1), z.string()])
const facetSchema = z.tuple([z.enum(facetNames), z.string(), z.number().int().min(1), z.number().int().min(1)])
const headerSchema = z.strictObject({
  received_at: z.number().int(),
  events: z.number().int().min(1),
  runs: z.array(runSchema).min(1),
  chains: z.array(z.tuple([z.string(), z.number().int().min(1), z.number().int().min(1), z.string()])).min(1),
  facets: z.array(facetSchema),
})

export interface Header {
  /** As the segment's row has it: `verify` finds either altered. */
  receivedAt: number
  events: number
  runs: readonly Run[]
  chains: readonly ChainPart[]
  facets: Facets
}

/** A facet as a row of its table: its name, the value, how many events, and the bitmap as an unsigned number. */
export type FacetRow = z.infer<typeof facetSchema>

export function facetRows(facets: Facets): FacetRow[] {
  const rows: FacetRow[] = []
  for (const [facet, values] of facets) {
    for (const [value, { events, blocks }] of values) rows.push([facet, value, events, blocks >>> 0])
  }
  return rows
}

/** The stored form of a new segment: compressed for speed. */
export function encodeSegment({ blocks, runs, chains, facets, ids, events, receivedAt }: Segment): StoredSegment {
  return {
    records: blocks.reduce((sum, { times }) => sum + times.length, 0),
    receivedAt,
    header: encodeHeader({ receivedAt, events, runs, chains, facets }),
    ids: bytesOfHashes(ids),
    facets,
    chains,
    blocks: blocks.map((block) => ({ ...placesOf(block), body: zstdCompressSync(block.text, options(1)) })),
  }
}

export function encodeHeader({ receivedAt, events, runs, chains, facets }: Header): Uint8Array {
  const header: z.infer<typeof headerSchema> = {
    received_at: receivedAt,
    events,
    runs: runs.map(({ chain, first, records, digest }) => [chain, first, records, digest]),
    chains: chains.map(({ chain, first, last, digestBefore }) => [chain, first, last, digestBefore]),
    facets: facetRows(facets),
  }
  return zstdCompressSync(Buffer.from(JSON.stringify(header)), options(1))
}

/** The stored form of a block that is written once and read for long: compressed harder, off the thread. */
export async function encodeBlockForLong(block: Block): Promise<StoredBlock> {
  return { ...placesOf(block), body: await compressOffThread(block.text, options(6)) }
}

const compressOffThread: (bytes: Buffer, options: ZstdOptions) => Promise<Buffer> = promisify(zstdCompress)

function placesOf({ times, quarantined, text }: Block): Omit<StoredBlock, 'body'> {
  const first_at = times.reduce((least, at) => Math.min(least, at))
  const last_at = times.reduce((most, at) => Math.max(most, at))
  const places: z.infer<typeof placesSchema> = { times: times.map((at) => at - first_at) }
  if (quarantined.size > 0) places.quarantined = [...quarantined]
  return {
    records: times.length,
    bytes: text.length,
    ...{ first_at, last_at },
    places: zstdCompressSync(Buffer.from(JSON.stringify(places)), options(1)),
  }
}

export function decodeHeader(bytes: Uint8Array): Header | null {
  const parsed = headerSchema.safeParse(jsonOf(decompress(bytes, mostHeaderBytes)))
  if (!parsed.success) return null
  const { received_at: receivedAt, events, runs, chains, facets: rows } = parsed.data
  const facets: Facets = new Map()
  for (const [facet, value, count, blocks] of rows) addFacet(facets, facet, value, count, blocks | 0)
  return {
    receivedAt,
    events,
    runs: runs.map(([chain, first, records, digest]) => ({ chain, first, records, digest })),
    chains: chains.map(([chain, first, last, digestBefore]) => ({ chain, first, last, digestBefore })),
    facets,
  }
}

const placesSchema = z.strictObject({
  times: z.array(z.number().int().min(0)),
  quarantined: z.array(z.tuple([z.number().int().min(0), quarantineSchema])).optional(),
})

/** When the records of a block happened and which were quarantined; null where that is damaged. */
export function decodePlaces(block: Omit<StoredBlock, 'body'>): Pick<Block, 'times' | 'quarantined'> | null {
  const parsed = placesSchema.safeParse(jsonOf(decompress(block.places, mostHeaderBytes)))
  if (!parsed.success || parsed.data.times.length !== block.records) return null
  return {
    times: parsed.data.times.map((offset) => block.first_at + offset),
    quarantined: new Map(parsed.data.quarantined),
  }
}

/** Null where the block is damaged: a checksum, its number of records or its times do not hold. */
export function decodeBlock(stored: StoredBlock): Block | null {
  const places = decodePlaces(stored)
  const text = decompress(stored.body, stored.bytes)
  if (places === null || text === null || text.length !== stored.bytes || text.at(-1) !== lineFeed) return null
  const block = { ...places, text }
  return recordBytes(block).length === stored.records ? block : null
}

const options = (level: number): ZstdOptions => ({
  params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
})

/** The flag of a frame that has a checksum (RFC 8878 section 3.1.1.1.1): without it zstd would check nothing. */
const hasChecksum = (bytes: Uint8Array): boolean => ((bytes[4] ?? 0) & 0b100) !== 0

function decompress(bytes: Uint8Array, maxOutputLength: number): Buffer | null {
  if (!hasChecksum(bytes)) return null
  try {
    return zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, maxOutputLength) })
  } catch {
    // Its checksum does not hold, it is no zstd, or it is larger than what was written.
    return null
  }
}

function jsonOf(text: Buffer | null): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    // Damaged: the schema refuses it.
    return undefined
  }
}
