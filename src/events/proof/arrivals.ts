/**
 * What the ledger knows of an event besides its body: its position, its time of receipt and, if quarantined, how it is
 * shown. The worker did not know that when it made the chain's digests, so a second chain of digests covers it: a0 =
 * SHA-256(domain ‖ chain id), an = SHA-256(an−1 ‖ n ‖ SHA-256(text of n)). It is computed when a checkpoint is signed,
 * and only its heads are kept.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { asBytes, storedBytes } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import { chainNext } from '../log/chain.ts'
import { quarantinedType } from '../log/quarantine.ts'
import type { ChainPoint } from './checkpoint.ts'

/** No JSON holds a blob, and no column here should. */
const exportSummary = [
  'event_id',
  'timestamp',
  'request_id',
  'verdict',
  'reason_code',
  'gateway_id',
  'team_id',
  'token_id',
]
  .map((column) => `iif(typeof(${column}) = 'blob', hex(${column}), ${column})`)
  .join()

/** An SQL expression on a row of `events`: the bytes of the text for what its body does not contain. */
export const arrivalText = asBytes(`position || ',' || received_at || case event_type when '${quarantinedType}' then
  json_array(${exportSummary}) else '' end`)

export const arrivalsStart = (chain: string): string =>
  new Bun.CryptoHasher('sha256').update(`gatehouse.arrivals.v1\0${chain}`).digest('hex')

export const arrivalsNext = (previous: string, n: number, text: unknown): string =>
  chainNext(previous, n, storedBytes(text) ?? '')

/** Rows of one read: a few milliseconds at most, so that nothing else waits long. */
const sliceRows = 500

/** The digest of arrivals up to event `to`, continued from `from`. Null if rows are missing in between. */
export async function arrivalsUpTo(
  ledger: Database,
  chain: string,
  from: Pick<ChainPoint, 'seq' | 'arrivals'>,
  to: number,
): Promise<string | null> {
  let { seq, arrivals } = from
  while (seq < to) {
    const rows = await ledger.read<{ seq: number; arrival: unknown }>(
      `select seq, ${arrivalText} as arrival from events where chain = ? and seq > ? and seq <= ?
        order by seq limit ${sliceRows}`,
      [chain, seq, to],
    )
    if (rows.length === 0) return null
    for (const row of rows) {
      if (row.seq !== seq + 1) return null
      seq = row.seq
      arrivals = arrivalsNext(arrivals, seq, row.arrival)
    }
    await yieldToEventLoop()
  }
  return arrivals
}
