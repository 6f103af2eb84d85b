/** A day with more costs than have rows of their own. It takes ten thousand events. */
import { expect, onTestFinished, test } from 'bun:test'
import { noAttribution } from '../event.ts'
import { openTestDatabases, testEvent } from '../testing/ledger.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { foldRollups } from './fold.ts'
import { pendingRollups } from './pending-rollups.ts'
import { rebuildRollups } from './rebuild.ts'
import { keysAtMost, overflowKey, stepMilliseconds } from './rollup.ts'

test('verify and rebuild know which costs of a full day stand under other values', async () => {
  const proof = await TestProof.start()
  onTestFinished(() => proof.store.remove())
  const cost = { currency: 'USD' as const, cost: 1e-9, estimated: false, input_tokens: 1, output_tokens: 1, model: 'm' }
  const unknown = { cached_input_tokens: null, reasoning_tokens: null, price_source: null, spend_owner: null }
  const spend = (from: number, count: number) => {
    const bodies = Array.from({ length: count }, (_, index) => {
      const event = proof.gatewayEvent(1, { event_cost_attribution: { ...cost, ...unknown, provider: 'p' } })
      const dimensions = { customer: `c${from + index}` }
      return JSON.stringify({ ...event, event_attribution: { ...event.event_attribution, dimensions } })
    })
    return proof.ship(1, bodies)
  }
  for (let from = 0; from < keysAtMost('cost'); from += 2000) await spend(from, 2000)
  await foldRollups(proof.store.ledger)
  await spend(keysAtMost('cost') - 5, 10)
  await foldRollups(proof.store.ledger)
  const costs =
    "select requests, count(*) as keys from event_rollups where kind = 'cost' group by requests order by requests"
  const expected = [
    { requests: 1, keys: keysAtMost('cost') - 5 },
    { requests: 2, keys: 5 },
    { requests: 5, keys: 1 },
  ]
  expect(await proof.store.ledger.read(costs)).toEqual(expected)
  expect(await proof.findings()).toEqual([])
  await proof.run("delete from event_rollups where kind = 'cost' and requests > 1")
  const { signal } = new AbortController()
  const retention = retentionDays * stepMilliseconds.day
  for await (const _ of rebuildRollups({ ledger: proof.store.ledger, now: proof.now, retention, since: null, signal }));
  expect(await proof.findings()).toEqual([])
}, 60_000)

test('adds new values of a day with an overflow row to it, without counting the sums of the day', async () => {
  const databases = await openTestDatabases()
  onTestFinished(() => databases.remove())
  const { ledger } = databases
  const at = '2026-11-20T10:00:00.000Z'
  const spend = async (customer: string) => {
    const event = testEvent({
      timestamp: at,
      event_attribution: { ...noAttribution, team_id: 'team', dimensions: { customer } },
      event_cost_attribution: {
        ...{ currency: 'USD', cost: 1, estimated: false, input_tokens: 1, output_tokens: 1, model: 'm', provider: 'p' },
        ...{ cached_input_tokens: null, reasoning_tokens: null, price_source: null, spend_owner: null },
      },
    })
    await ledger.write(pendingRollups([event], Date.parse(at)))
    await foldRollups(ledger)
  }
  const costs = () =>
    ledger.read<{ key: string; requests: number }>(
      "select key, requests from event_rollups where kind = 'cost' order by length(key), key",
    )
  await spend('early')
  const [early] = await costs()
  const overflow = overflowKey('cost', early?.key ?? '') ?? ''
  await ledger.write([{ sql: "update event_rollups set key = ? where kind = 'cost'", args: [overflow] }])
  await spend('late')
  expect(await costs()).toEqual([{ key: overflow, requests: 2 }])
})
