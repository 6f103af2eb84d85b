/**
 * Merges small segments, which a quiet gateway or the control plane leaves, into larger ones. Segments have levels by
 * their size; sixteen neighbours of a level become one of the next, so that a record is compressed at most three times.
 * No record, position or chain changes: small blocks are joined, full ones are moved as they are.
 *
 * A merge is one transaction, guarded by the segments it replaces: of two control planes that merge the same ones, one
 * does, and a kill leaves either the old segments or the new one.
 */
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { storedBytes } from '../../store/damage/stored-text.ts'
import { brokenConstraint } from './append.ts'
import { bytesOfHashes, hashesOfBytes, mergeHashes } from './id-hashes.ts'
import { addFacet, blockRecords, type Facets, joinBlocks, joinRuns, mostBlocks } from './segment.ts'
import {
  decodeBlock,
  decodeHeader,
  encodeBlockForLong,
  encodeHeader,
  facetRows,
  type Header,
  type StoredBlock,
} from './segment-codec.ts'
import { blockColumns, insertSegment, placedBlock, removeSegments } from './segment-rows.ts'

/** Segments, from the newest, among which neighbours are looked for. */
const mostScanned = 4096
export interface MergeSizes {
  /** Records of a full block. */
  full: number
  /** So many neighbours of one level are merged. */
  fanIn: number
}
const usualSizes: MergeSizes = { full: blockRecords, fanIn: 16 }

/** 0: less than 16 records; 1: less than 256; 2: less than 4 096; 3: large enough. */
const levelOf = (records: number): number => Math.min(3, Math.floor(Math.log2(records) / 4))

interface Small {
  first: number
  records: number
}

/** Merges one group of neighbours; false where there is none to merge. Other sizes are for tests. */
export async function mergeOnce(ledger: Database, sizes = usualSizes): Promise<boolean> {
  const rows = await ledger.read<{ first_position: number; records: number }>(
    'select first_position, records from event_segments order by first_position desc limit ?',
    [mostScanned],
  )
  const segments = rows.map(({ first_position: first, records }) => ({ first, records })).reverse()
  const group = findGroup(segments, sizes)
  return group !== null && (await mergeGroup(ledger, group, sizes))
}

/** The first neighbours of the lowest level that has enough of them; smaller ones between them count. */
function findGroup(segments: readonly Small[], { fanIn }: MergeSizes): Small[] | null {
  for (const level of [0, 1, 2]) {
    let group: Small[] = []
    for (const segment of segments) {
      const last = group.at(-1)
      const adjacent = last === undefined || last.first + last.records === segment.first
      if (!adjacent || levelOf(segment.records) > level) group = []
      if (levelOf(segment.records) <= level) group.push(segment)
      if (group.length === fanIn) return group
    }
  }
  return null
}

interface Part {
  first: number
  header: Header
  ids: Uint32Array
  blocks: StoredBlock[]
}

async function mergeGroup(ledger: Database, group: readonly Small[], { full }: MergeSizes): Promise<boolean> {
  const parts = await readParts(ledger, group)
  if (parts === null) return false
  const fitting = fit(parts, full)
  if (fitting.length < 2) return false
  const merged = await mergeParts(fitting, full)
  const [first] = fitting
  if (merged === null || first === undefined) return false
  const { segment, facets } = merged
  const guard: Statement = {
    sql: `insert into guards (holds) select 0 where (select count(*) from event_segments
      where first_position in (select value from json_each(?))) <> ?`,
    args: [JSON.stringify(fitting.map((part) => part.first)), fitting.length],
  }
  try {
    await ledger.write(
      [
        guard,
        ...removeSegments(fitting.map((part) => ({ first: part.first, facets: part.header.facets }))),
        ...insertSegment(segment, [...facetRows(facets)], first.first),
        { sql: 'update event_log set merges = merges + 1', args: [] },
      ],
      {},
    )
    return true
  } catch (error) {
    // Another control plane, or retention, was first.
    if (brokenConstraint(error) === 'check') return true
    throw error
  }
}

/** As many parts, from the first, as have room in one segment. */
function fit(parts: readonly Part[], full: number): readonly Part[] {
  const counts: number[] = []
  for (const [index, { blocks }] of parts.entries()) {
    for (const { records } of blocks) {
      const last = counts.at(-1)
      if (last === undefined || last + records > full) counts.push(records)
      else counts[counts.length - 1] = last + records
    }
    if (counts.length > mostBlocks) return parts.slice(0, index)
  }
  return parts
}

/** Null where a part is damaged: it stays as it is, for `verify` to name. */
async function mergeParts(parts: readonly Part[], full: number) {
  const groups: StoredBlock[][] = []
  const facets: Facets = new Map()
  for (const part of parts) {
    const places = part.blocks.map((block) => {
      const last = groups.at(-1)
      const filled = last?.reduce((sum, { records }) => sum + records, 0) ?? full
      if (last === undefined || filled + block.records > full) groups.push([block])
      else last.push(block)
      return groups.length - 1
    })
    for (const [facet, values] of part.header.facets) {
      for (const [value, { events, blocks }] of values) {
        addFacet(facets, facet, value, { events, blocks: movedBits(blocks, places) })
      }
    }
  }
  const blocks: StoredBlock[] = []
  for (const group of groups) {
    const block = await joined(group)
    if (block === null) return null
    blocks.push(block)
  }
  const header: Header = {
    events: parts.reduce((sum, { header: { events } }) => sum + events, 0),
    runs: joinRuns(parts.flatMap(({ header: { runs } }) => runs)),
    facets,
  }
  const records = blocks.reduce((sum, block) => sum + block.records, 0)
  const ids = bytesOfHashes(mergeHashes(parts.map((part) => part.ids)))
  return { segment: { records, header: encodeHeader(header), ids, blocks }, facets }
}

async function joined(group: readonly StoredBlock[]): Promise<StoredBlock | null> {
  const [only] = group
  if (group.length === 1 && only !== undefined) return only
  const blocks = group.map(decodeBlock)
  const sound = blocks.filter((block) => block !== null)
  return sound.length === blocks.length ? await encodeBlockForLong(joinBlocks(sound)) : null
}

function movedBits(bits: number, places: readonly number[]): number {
  let moved = 0
  for (const [from, to] of places.entries()) if ((bits >>> from) & 1) moved |= 1 << to
  return moved
}

async function readParts(ledger: Database, group: readonly Small[]): Promise<Part[] | null> {
  const list = JSON.stringify(group.map(({ first }) => first))
  const [segments, blocks] = await Promise.all([
    ledger.read<{ first_position: number; header: unknown; ids: unknown }>(
      'select first_position, header, ids from event_segments where first_position in (select value from json_each(?)) order by first_position',
      [list],
    ),
    ledger.read(
      `select ${blockColumns} from event_blocks b where b.segment in (select value from json_each(?)) order by b.first_position`,
      [list],
    ),
  ])
  const placed = blocks.map(placedBlock)
  const parts: Part[] = []
  for (const { first_position: first, header, ids } of segments) {
    const decoded = decodeHeader(storedBytes(header) ?? new Uint8Array())
    const hashes = hashesOfBytes(storedBytes(ids) ?? new Uint8Array(1))
    if (decoded === null || hashes === null) return null
    const own = placed.filter(({ segment }) => segment === first)
    parts.push({ first, header: decoded, ids: hashes, blocks: own.map(plainBlock) })
  }
  return parts.length === group.length ? parts : null
}

const plainBlock = ({ records, first_at, last_at, places, body }: StoredBlock): StoredBlock => ({
  ...{ records, first_at, last_at, places, body },
})
