import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import {
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
} from '../../members/testing/temporary-control-plane.ts'
import { tokenModelsRoute } from './token-models-route.ts'

let plane: TemporaryControlPlane
let token: string
/** The clock of the installation is at 2026-01-02T03:04:05.678Z. */
beforeAll(async () => {
  plane = await temporaryControlPlane(testOrigin, (members) => [tokenModelsRoute(members)])
  token = (await asAdmin('POST', '/v1/tokens', { name: 'app', purpose: 'general' })).json.id
  for (let number = 0; number < 9; number += 1) await spend('2026-01-02T01:00:00.000Z', `made-up-${number}`, 0)
  await spend('2026-01-01T10:00:00.000Z', 'opus', 7)
  await spend('2026-01-02T01:00:00.000Z', 'opus', 2)
  await spend('2025-12-30T01:00:00.000Z', 'opus', 100)
  await spend('2026-01-01T10:00:00.000Z', 'opus', 50, crypto.randomUUID())
})
afterAll(() => plane.remove())

async function spend(at: string, model: string, cost: number, of = token) {
  const event: Event = {
    ...{ event_id: crypto.randomUUID(), event_type: 'gateway.request.outcome', request_id: null, config_version: 1 },
    ...{ timestamp: at, verdict: 'allow', reason_code: 'ok', details: { model, provider: 'p' } },
    event_attribution: { ...noAttribution, team_id: plane.teamId, token_id: of, gateway_id: plane.gatewayId },
    event_cost_attribution: {
      ...{ currency: 'USD', cost, estimated: false, input_tokens: 100, output_tokens: 10, provider: 'p', model },
      ...{ cached_input_tokens: null, reasoning_tokens: null, price_source: null, spend_owner: null },
    },
  }
  await plane.store.ledger.write(pendingRollups([event], plane.clock.now()))
}

const asAdmin = (method: string, to: string, body?: unknown) =>
  plane.call(method, to, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })

test('reports the models of a token by day, and sums up those beyond the first', async () => {
  const { status, json } = await asAdmin('GET', `/v1/tokens/${token}/models?since=2d`)
  expect(status).toBe(200)
  expect(json).toMatchObject({ since: '2025-12-31T00:00:00.000Z', step: 'day' })
  const [first] = json.models
  expect(first).toMatchObject({ model: 'opus', requests: 2, input_tokens: 200, cost: 9 })
  expect(first.days).toMatchObject([
    { at: '2026-01-01T00:00:00.000Z', cost: 7 },
    { at: '2026-01-02T00:00:00.000Z', cost: 2 },
  ])
  expect(json.models).toHaveLength(8)
  expect(json.models.at(-1)).toMatchObject({ model: null, requests: 3 })
})

test('refuses a token that the caller does not see, and more than a year', async () => {
  expect((await asAdmin('GET', `/v1/tokens/${crypto.randomUUID()}/models?since=1d`)).status).toBe(404)
  expect((await asAdmin('GET', `/v1/tokens/${token}/models?since=60w`)).json.error.param).toBe('since')
})
