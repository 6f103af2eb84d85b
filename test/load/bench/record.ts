/** What the bench asks of the control plane: that each event is in the ledger once, how fast they leave, revocations. */
import { createToken, revoke } from '../../support/client.ts'
import type { Gatehouse } from '../../support/harness.ts'
import { type LedgerCount, settledCount } from '../events/ledger-count.ts'
import { percentile, timesOf } from '../generator/timing.ts'

export interface LedgerCost {
  /** Requests whose number is known, and how many outcomes were recorded for them. */
  requests_sent: number
  outcomes_recorded: number
  outcomes_in_all: number
  exchanges_in_all: number
  exported_per_second: number
}

/** Requests that were sent one by one, and what the ledger had before and after them. */
export interface Counted {
  sent: number
  outcomes: number
}

export async function measureLedger(gatehouse: Gatehouse, before: LedgerCount, counted: Counted): Promise<LedgerCost> {
  const { outcomes, exchanges } = await settledCount(gatehouse.dataDirectory)
  return {
    requests_sent: counted.sent,
    outcomes_recorded: counted.outcomes,
    outcomes_in_all: outcomes - before.outcomes,
    exchanges_in_all: exchanges - before.exchanges,
    exported_per_second: await exportRate(gatehouse),
  }
}

/** Lines of an export of everything, a second. */
async function exportRate(gatehouse: Gatehouse): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(`${gatehouse.baseUrl}/v1/events/export?since=1d&format=csv`, {
    headers: { authorization: `Bearer ${gatehouse.adminToken}` },
  })
  if (!answer.ok) throw new Error(`The export was answered ${answer.status}`)
  let lines = 0
  for await (const bytes of answer.body ?? []) for (const byte of bytes) if (byte === 10) lines += 1
  return lines / ((performance.now() - startedAt) / 1000)
}

/** Milliseconds until a revocation is answered, which is when every connected gateway refuses the token. */
export async function measureRevocations(gatehouse: Gatehouse, rounds: number): Promise<{ p50: number; p99: number }> {
  const ids: string[] = []
  for (let made = 0; made < rounds; made++) ids.push((await createToken(gatehouse)).id)
  const times = await timesOf(rounds, (round) => revoke(gatehouse, ids[round] ?? ''))
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}
