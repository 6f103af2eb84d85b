/**
 * What the bench asks of the control plane: that each event is in the ledger once, how fast they leave, revocations.
 */
import { createToken, revoke } from '../../support/client.ts'
import type { Gatehouse } from '../../support/harness.ts'
import { type LedgerCount, settledCount } from '../events/ledger-count.ts'
import { percentile, timesOf } from '../generator/timing.ts'
import { requestsSeen } from '../rig/beside.ts'
import type { Field } from './contenders.ts'

export interface RecordCost {
  /** Requests that reached the provider, and the outcomes that were recorded of them: the same, each once. */
  requests_sent: number
  outcomes_recorded: number
  exchanges_recorded: number
  exported_per_second: number
  revocation_ms: { p50: number; p99: number }
}

/** What was there before the measurements began. */
export interface Before {
  ledger: LedgerCount
  seen: number
}

export const lookBefore = async ({ upstream, gatehouse }: Field): Promise<Before> => ({
  ledger: await settledCount(gatehouse.dataDirectory),
  seen: await requestsSeen(upstream, 'everything'),
})

export async function measureRecord(
  { upstream, gatehouse }: Field,
  before: Before,
  revocations: number,
): Promise<RecordCost> {
  const { outcomes, exchanges } = await settledCount(gatehouse.dataDirectory)
  return {
    requests_sent: (await requestsSeen(upstream, 'everything')) - before.seen,
    outcomes_recorded: outcomes - before.ledger.outcomes,
    exchanges_recorded: exchanges - before.ledger.exchanges,
    exported_per_second: await exportRate(gatehouse),
    revocation_ms: await measureRevocations(gatehouse, revocations),
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
async function measureRevocations(gatehouse: Gatehouse, rounds: number): Promise<{ p50: number; p99: number }> {
  const ids: string[] = []
  for (let made = 0; made < rounds; made++) ids.push((await createToken(gatehouse)).id)
  const times = await timesOf(rounds, (round) => revoke(gatehouse, ids[round] ?? ''))
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}
