/** Alters the log as somebody could who writes the ledger's file and knows its form: every checksum holds afterwards. */
import type { Database } from '../../store/open.ts'
import { joinTags, type Tags, tagsOfRecord } from '../log/block-places.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'
import { type Quarantine, quarantinedEvent } from '../log/quarantine.ts'
import { type OpenSegment, readChain } from '../log/read-records.ts'
import type { LogRecord } from '../log/record.ts'
import { type Block, buildSegment, IndexBuilder, recordBytes } from '../log/segment.ts'
import {
  decodeBlock,
  decodeHeader,
  encodeBlockForLong,
  encodeHeader,
  encodeSegment,
  type Header,
} from '../log/segment-codec.ts'
import { appendSegment, readBlocks, readSegments } from '../log/segment-rows.ts'

/** A record of a block, which may be altered. */
export interface StoredLine {
  text: string
  at: number
  quarantine: Quarantine | undefined
}

async function openSegments(ledger: Database): Promise<OpenSegment[]> {
  const rows = await readSegments(ledger, 'order by first_position', [])
  return await Promise.all(
    rows.map(async (row) => {
      const header = decodeHeader(row.header)
      if (header === null) throw new Error('The header is damaged')
      return { row, header, blocks: await readBlocks(ledger, [row.first]) }
    }),
  )
}

const linesOf = (block: Block): StoredLine[] =>
  recordBytes(block).map((bytes, place) => ({
    ...{ text: bytes.toString(), at: block.times[place] ?? 0, quarantine: block.quarantined.get(place) },
  }))

/** The tags that a line must have; none where it is no record. */
function tagsOf({ text, at, quarantine }: StoredLine): Tags {
  try {
    const record: LogRecord = quarantine === undefined ? JSON.parse(text) : quarantinedEvent(quarantine, at)
    return tagsOfRecord(new IndexBuilder().add(record, 0))
  } catch {
    // An altered line may be anything.
    return tagsOfRecord([])
  }
}

const blockOf = (lines: readonly StoredLine[]): Block => ({
  tags: joinTags(lines.map(tagsOf)),
  times: lines.map(({ at }) => at),
  quarantined: new Map(
    lines.flatMap(({ quarantine }, place) => (quarantine === undefined ? [] : [[place, quarantine]])),
  ),
  text: Buffer.from(lines.map(({ text }) => `${text}\n`).join('')),
})

/** The position of a record of a chain. */
export async function positionOf(ledger: Database, chain: string, seq: number): Promise<number> {
  for await (const record of readChain(ledger, chain, { after: seq - 1, upTo: seq, bodies: false })) {
    if (record !== null) return record.position
  }
  throw new Error(`The chain ${chain} has no record ${seq}`)
}

/** Alters the records of the block that holds a position. Neither the index nor a digest follows. */
export async function alterBlock(
  ledger: Database,
  position: number,
  change: (lines: StoredLine[], place: number) => StoredLine[],
): Promise<void> {
  for (const { blocks } of await openSegments(ledger)) {
    for (const stored of blocks) {
      const place = position - stored.first_position
      const block = place < 0 || place >= stored.records ? null : decodeBlock(stored)
      if (block === null) continue
      const altered = await encodeBlockForLong(blockOf(change(linesOf(block), place)))
      await ledger.write([
        {
          sql: `update event_blocks set records = ?, bytes = ?, first_at = ?, last_at = ?, places = ?, body = ?
            where first_position = ?`,
          args: [
            ...[altered.records, altered.bytes, altered.first_at, altered.last_at, altered.places, altered.body],
            stored.first_position,
          ],
        },
      ])
    }
  }
}

/** Alters one record, as `alterBlock` does. */
export const alterLine = (
  ledger: Database,
  position: number,
  change: (line: StoredLine) => StoredLine,
): Promise<void> =>
  alterBlock(ledger, position, (lines, place) => lines.map((line, index) => (index === place ? change(line) : line)))

/** Alters the header of the segment that begins at a position. */
export async function alterHeader(
  ledger: Database,
  position: number,
  change: (header: Header) => Header,
): Promise<void> {
  const segment = (await openSegments(ledger)).find(({ row }) => row.first === position)
  if (segment === undefined) throw new Error(`No segment begins at position ${position}`)
  const header = encodeHeader(change(segment.header))
  await ledger.write([
    { sql: 'update event_segments set header = ? where first_position = ?', args: [header, position] },
  ])
}

/** A record with its place, of a log that is written anew. */
export interface PlacedLine extends StoredLine {
  chain: string
  receivedAt: number
}

/**
 * Writes the whole log anew from altered records, with the digests, indexes and heads that follow from them: only what
 * was signed can tell. Each stretch of a chain becomes a segment. For a log from which nothing was removed.
 */
export async function rewriteLog(ledger: Database, change: (lines: PlacedLine[]) => PlacedLine[]): Promise<void> {
  const lines: PlacedLine[] = []
  for (const { row, header, blocks } of await openSegments(ledger)) {
    const chains = header.runs.flatMap(({ chain, records }) => Array.from({ length: records }, () => chain))
    for (const stored of blocks) {
      const block = decodeBlock(stored)
      if (block === null) throw new Error('A block is damaged')
      for (const line of linesOf(block)) {
        lines.push({ ...line, chain: chains.shift() ?? '', receivedAt: row.receivedAt })
      }
    }
  }
  const emptied = ['event_segments', 'event_blocks', 'segment_facets', 'segment_chains', 'chains'].map((table) => ({
    ...{ sql: `delete from ${table}`, args: [] },
  }))
  await ledger.write([...emptied, { sql: 'update event_log set next_position = 1', args: [] }])
  const heads = new Map<string, { seq: number; walk: ChainWalk }>()
  for (const stretch of stretches(change(lines))) {
    const [{ chain, receivedAt } = { chain: '', receivedAt: 0 }] = stretch
    const head = heads.get(chain) ?? { seq: 0, walk: new ChainWalk(chainStart(chain)) }
    heads.set(chain, head)
    const place = { chain, first: head.seq + 1, digestBefore: head.walk.digest, receivedAt }
    for (const { text } of stretch) {
      head.seq += 1
      head.walk.step(head.seq, text)
    }
    const records = stretch.map(({ text, at, quarantine }) => {
      const bytes = Buffer.from(text)
      return quarantine === undefined
        ? { bytes, at, record: JSON.parse(text) }
        : { bytes, at, record: null, quarantine }
    })
    const { seq, walk } = head
    await ledger.write([
      ...appendSegment(encodeSegment(buildSegment(records, { ...place, digest: walk.digest }))),
      {
        sql: 'insert or replace into chains (chain, seq, digest, updated_at) values (?, ?, ?, ?)',
        args: [chain, seq, walk.digest, receivedAt],
      },
    ])
  }
}

function stretches(lines: readonly PlacedLine[]): PlacedLine[][] {
  const all: PlacedLine[][] = []
  for (const line of lines) {
    const last = all.at(-1)
    const isNext = last?.[0]?.chain === line.chain && last[0].receivedAt === line.receivedAt
    if (isNext) last?.push(line)
    else all.push([line])
  }
  return all
}
