/**
 * The stored form of segments: compressed parts, each with a checksum of its own (zstd's XXH64), so that a part in which
 * a bit was flipped is damaged and never read as something else. Decoders give null for what is damaged.
 */
import { promisify } from 'node:util'
import { constants, type ZstdOptions, zstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { z } from 'zod'
import { bytesOfHashes } from './id-hashes.ts'
import { quarantineReasons } from './quarantine.ts'
import { facetNames } from './record.ts'
import { addFacet, type Block, type Facets, type IndexedFacet, lineFeed, type Run, type Segment } from './segment.ts'

/** Bytes of a block that is opened: full of the largest records. More is damage, or a compression bomb. */
const mostBlockBytes = 2 ** 30
const mostHeaderBytes = 2 ** 26

export interface StoredBlock {
  records: number
  first_at: number
  last_at: number
  /** JSON: the times of its records, from `first_at`, and what was put aside. */
  places: string
  body: Uint8Array
}

export interface StoredSegment {
  records: number
  header: Uint8Array
  ids: Uint8Array
  blocks: StoredBlock[]
}

const runSchema = z.strictObject({
  chain: z.string(),
  first: z.number().int().min(1),
  records: z.number().int().min(1),
  digest: z.string(),
})
const indexedFacets = [...facetNames, 'chain'] as const
const headerSchema = z.strictObject({
  events: z.number().int().min(1),
  runs: z.array(runSchema).min(1),
  facets: z.array(z.tuple([z.enum(indexedFacets), z.string(), z.number().int().min(1), z.number().int().min(1)])),
})

export interface Header {
  events: number
  runs: readonly Run[]
  facets: Facets
}

/** A facet as a row of its table; the bitmap as an unsigned number. */
export interface FacetRow {
  facet: IndexedFacet
  value: string
  events: number
  blocks: number
}

export function* facetRows(facets: Facets): Generator<FacetRow> {
  for (const [facet, values] of facets) {
    for (const [value, { events, blocks }] of values) yield { facet, value, events, blocks: blocks >>> 0 }
  }
}

export function encodeSegment({ blocks, runs, facets, ids, events }: Segment): StoredSegment {
  const stored = blocks.map((block) => ({ ...placesOf(block), body: zstdCompressSync(block.text, options(3)) }))
  return {
    records: blocks.reduce((sum, { times }) => sum + times.length, 0),
    header: encodeHeader({ events, runs, facets }),
    ids: bytesOfHashes(ids),
    blocks: stored,
  }
}

export function encodeHeader({ events, runs, facets }: Header): Uint8Array {
  const rows = [...facetRows(facets)].map(({ facet, value, events: count, blocks }) => [facet, value, count, blocks])
  return zstdCompressSync(Buffer.from(JSON.stringify({ events, runs, facets: rows })), options(3))
}

/** The same form, compressed harder and off the thread: for what is written once and read for long. */
export async function encodeBlockForLong(block: Block): Promise<StoredBlock> {
  return { ...placesOf(block), body: await compressOffThread(block.text, options(6)) }
}

const compressOffThread: (bytes: Buffer, options: ZstdOptions) => Promise<Buffer> = promisify(zstdCompress)

function placesOf({ times, aside }: Block): Omit<StoredBlock, 'body'> {
  const first_at = times.reduce((least, at) => Math.min(least, at))
  const last_at = times.reduce((most, at) => Math.max(most, at))
  const places = { times: times.map((at) => at - first_at), ...(aside.size > 0 && { aside: [...aside] }) }
  return { records: times.length, first_at, last_at, places: JSON.stringify(places) }
}

export function decodeHeader(bytes: Uint8Array): Header | null {
  const parsed = headerSchema.safeParse(jsonOf(decompress(bytes, mostHeaderBytes)))
  if (!parsed.success) return null
  const { events, runs, facets: rows } = parsed.data
  const facets: Facets = new Map()
  for (const [facet, value, count, blocks] of rows) addFacet(facets, facet, value, { events: count, blocks: blocks | 0 })
  return { events, runs, facets }
}

const asideSchema = z.strictObject({
  reason: z.enum(quarantineReasons),
  event_id: z.string(),
  gateway_id: z.string(),
})
const placesSchema = z.strictObject({
  times: z.array(z.number().int().min(0)),
  aside: z.array(z.tuple([z.number().int().min(0), asideSchema])).optional(),
})

/** Null where the block is damaged: its checksum, its number of records or its times do not hold. */
export function decodeBlock({ records, first_at, places, body }: StoredBlock): Block | null {
  const text = decompress(body, mostBlockBytes)
  const parsed = placesSchema.safeParse(jsonOf(places))
  if (text === null || !parsed.success || parsed.data.times.length !== records || linesIn(text) !== records) return null
  return { times: parsed.data.times.map((offset) => first_at + offset), aside: new Map(parsed.data.aside), text }
}

function linesIn(text: Buffer): number {
  if (text.at(-1) !== lineFeed) return 0
  let lines = 0
  for (let at = text.indexOf(lineFeed); at !== -1; at = text.indexOf(lineFeed, at + 1)) lines += 1
  return lines
}

const options = (level: number): ZstdOptions => ({
  params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
})

function decompress(bytes: Uint8Array, maxOutputLength: number): Buffer | null {
  try {
    return zstdDecompressSync(bytes, { maxOutputLength })
  } catch {
    // Its checksum does not hold, it is no zstd, or it is larger than anything that was written.
    return null
  }
}

function jsonOf(text: Buffer | string | null): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    // Damaged: the schema refuses it.
    return undefined
  }
}
