/** Counts what has reached the ledger, from its file. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { until } from '../support/eventually.ts'

export interface LedgerCount {
  outcomes: number
  exchanges: number
  events: number
}

const sql = `select count(*) as events,
  count(*) filter (where event_type = 'gateway.request.outcome') as outcomes,
  count(distinct case when event_type = 'gateway.request.outcome' then json_extract(body, '$.exchange_id') end)
    as exchanges
from events`

export function countLedger(dataDirectory: string): LedgerCount {
  using ledger = new Database(join(dataDirectory, 'ledger.db'), { readonly: true })
  return ledger.query<LedgerCount, []>(sql).get() ?? { outcomes: 0, exchanges: 0, events: 0 }
}

/** The number of events alone, which costs no scan of their bodies. */
function highestPosition(dataDirectory: string): number {
  using ledger = new Database(join(dataDirectory, 'ledger.db'), { readonly: true })
  const row = ledger.query<{ position: number | null }, []>('select max(position) as position from events').get()
  return row?.position ?? 0
}

/** Waits until nothing has arrived for a second; gives the count and how long the arriving took. */
export async function settledCount(dataDirectory: string): Promise<LedgerCount & { waitedMs: number }> {
  const startedAt = performance.now()
  let seen = -1
  let changedAt = startedAt
  await until(
    'the ledger has come to rest',
    () => {
      const now = highestPosition(dataDirectory)
      if (now !== seen) changedAt = performance.now()
      seen = now
      return performance.now() - changedAt > 1000
    },
    { withinMs: 300_000, everyMs: 100 },
  )
  return { ...countLedger(dataDirectory), waitedMs: changedAt - startedAt }
}
