/** What is shown as used of tokens that have no limit. */
import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../events/event.ts'
import { newId } from '../lib/ids.ts'
import { temporaryInstallation } from '../members/testing/installation.ts'
import { readDepletion } from './api/depletion.ts'
import { temporaryLimitApi } from './testing/limit-api.ts'
import { totalStatements } from './totals.ts'

const outcome = (tokenId: string, dispatched: boolean, dollars: number | null): Event => ({
  ...{ event_id: newId(), event_type: 'gateway.request.outcome', request_id: null, verdict: 'allow' },
  ...{ reason_code: 'ok', config_version: 1, timestamp: '2026-01-01T00:00:00.000Z' },
  event_attribution: { ...noAttribution, token_id: tokenId },
  details: dispatched ? { dispatched: true } : {},
  event_cost_attribution: {
    ...{ currency: 'USD', cost: dollars, estimated: false, input_tokens: 1, output_tokens: 1 },
    ...{ cached_input_tokens: null, reasoning_tokens: null, provider: 'p', model: 'm' },
    ...{ price_source: null, spend_owner: null },
  },
})

test('counts requests and spend of a token without limits, and for the limits that a token lacks', async () => {
  const made = await temporaryInstallation()
  try {
    const call = temporaryLimitApi(made)
    const { ledger } = made.store
    const token = await call('POST', '/v1/tokens', { name: 't', purpose: 'general' })
    const { id } = token.json
    const rotated = (await call('POST', `/v1/tokens/${id}/rotate`, { grace_period_seconds: 60 })).json.id
    await ledger.write(totalStatements([outcome(id, true, 0.5), outcome(id, false, 0), outcome('unknown', true, 1)]))
    await ledger.write(totalStatements([outcome(rotated, true, 0.25), outcome(id, true, null)]))
    expect(totalStatements([outcome(id, false, 0)])).toEqual([])
    const read = async (maxBudget: number | null) =>
      (await readDepletion(ledger, [{ id: rotated, maxRequests: null, maxBudget }])).get(rotated)?.depletion
    expect(await read(null)).toEqual({
      ...{ current_spend: 0.75, remaining_budget: null },
      ...{ current_requests: 3, remaining_requests: null },
    })
    // A limit counts from when it was set.
    expect(await read(1_000_000_000)).toMatchObject({ current_spend: 0, remaining_budget: 1, current_requests: 3 })
  } finally {
    made.store.remove()
  }
})
