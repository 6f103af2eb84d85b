/**
 * The event log in segments of the ledger (events/log/README.md): what an installation has that was told of nothing else.
 *
 * SQL text: the smallest and greatest keys of tables.
 */
import type { Reader } from '../../store/open.ts'
import { readLogParts } from '../log/read-log.ts'
import { digestAt, openSegments, readChain, readRecords } from '../log/read-records.ts'
import { readChainRows } from '../log/segment-rows.ts'
import { blocksBehind } from '../log/segment-times.ts'
import type { ChainReader, EventLog } from './event-log.ts'
import { oldestPosition, readChained } from './read-chained.ts'

/** The largest instant (ECMA-262, Time Values). */
const lastInstant = 8.64e15

export const segmentLog = (ledger: Reader): EventLog => ({
  outside: null,
  parts: (query) => readLogParts(ledger, query),
  records: (range) => readRecords(ledger, range),
  chained: (range) => readChained(ledger, range),
  chains: () => segmentChains(ledger),
  oldest: () => oldestPosition(ledger),
  async times() {
    const [row] = await ledger.read<{ first: number | null; last: number | null }>(
      'select (select min(first_at) from event_blocks) as first, (select max(last_at) from event_blocks) as last',
    )
    return row === undefined || row.first === null || row.last === null ? null : { first: row.first, last: row.last }
  },
  async nextTime(from) {
    const [row] = await ledger.read<{ at: number | null }>(
      `select cast(min(at) as real) as at from (
        select ?1 as at where exists (
          select 1 from event_blocks indexed by event_blocks_end where last_at >= ?1 and first_at < ?1)
        union all select min(first_at) from event_blocks where first_at between ?1 and ?2)`,
      [from, lastInstant],
    )
    return row?.at ?? null
  },
  async timeAt(position) {
    for await (const { at } of readRecords(ledger, { from: position, before: position + 1 })) return at
    return null
  },
  async arrived(behind, window) {
    const { sql, args } = blocksBehind(behind, window)
    const [row] = await ledger.read<{ first: number | null; last: number }>(
      `select min(first_position) as first, max(first_position + records - 1) as last ${sql}`,
      args,
    )
    return row === undefined || row.first === null ? null : { first: row.first, last: row.last }
  },
})

function segmentChains(ledger: Reader): ChainReader {
  const open = openSegments()
  return {
    records: (chain, range) => readChain(ledger, chain, range, open),
    digestAt: (chain, seq) => digestAt(ledger, chain, seq, open),
    async firstSince(chain, receivedAt) {
      const received = 'and (select received_at from event_segments where first_position = segment) >= ?'
      const [row] = await readChainRows(ledger, chain, `${received} order by first_seq limit 1`, [receivedAt])
      return row?.first ?? null
    },
    async points(chain, seqs) {
      const rows = await readChainRows(
        ledger,
        chain,
        `and first_seq > 1 and first_seq in (select (select max(first_seq) from segment_chains
          where chain = ? and first_seq <= wanted.value) from json_each(?) as wanted) order by first_seq`,
        [chain, JSON.stringify(seqs.map((seq) => seq + 1))],
      )
      return rows.map(({ first, digestBefore: digest }) => ({ seq: first - 1, digest }))
    },
  }
}
