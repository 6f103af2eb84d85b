import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import {
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
} from '../../members/testing/temporary-control-plane.ts'
import { costRoutes } from './cost-routes.ts'
import { reconciliationRoute } from './reconciliation-route.ts'

let plane: TemporaryControlPlane
let otherTeam: string
/** The clock of the installation is at 2026-01-02T03:04:05.678Z. */
beforeAll(async () => {
  plane = await temporaryControlPlane(testOrigin, (members) => [costRoutes(members), reconciliationRoute(members)])
  otherTeam = (await asAdmin('POST', '/v1/teams', { name: '=Checkout' })).json.id
  const spend = async (at: string, team: string | null, model: string, cost: number, customer?: string) => {
    const event: Event = {
      ...{ event_id: crypto.randomUUID(), event_type: 'gateway.request.outcome', request_id: null, config_version: 1 },
      ...{ timestamp: at, verdict: 'allow', reason_code: 'ok' },
      event_attribution: {
        ...{ ...noAttribution, team_id: team, user_id: plane.userId, gateway_id: plane.gatewayId },
        ...(customer !== undefined && { dimensions: { customer } }),
      },
      details: { model, provider: 'anthropic' },
      event_cost_attribution: {
        ...{ currency: 'USD', cost, estimated: false, input_tokens: 100, output_tokens: 10 },
        ...{ cached_input_tokens: null, reasoning_tokens: null, provider: 'anthropic', model },
        ...{ price_source: null, spend_owner: null },
      },
    }
    await plane.store.ledger.write(pendingRollups([event], plane.clock.now()))
  }
  await spend('2025-12-01T10:00:00.000Z', plane.teamId, 'claude-opus-4-1', 8)
  await spend('2025-12-31T10:00:00.000Z', plane.teamId, 'claude-opus-4-1', 14, 'acme')
  await spend('2026-01-01T10:00:00.000Z', plane.teamId, 'claude-opus-4-1', 7, 'acme')
  await spend('2026-01-01T11:00:00.000Z', otherTeam, 'claude-haiku-4-5', 1, 'acme')
  await spend('2026-01-02T01:00:00.000Z', otherTeam, 'claude-haiku-4-5', 2, '=globex')
  await spend('2026-01-02T02:00:00.000Z', null, 'claude-haiku-4-5', 0.25)
})
afterAll(() => plane.remove())

const asAdmin = (method: string, to: string, body?: unknown) =>
  plane.call(method, to, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })

test('reports a month by team and model, with the month before and a forecast', async () => {
  const { status, json } = await asAdmin('GET', '/v1/usage/costs')
  expect(status).toBe(200)
  expect(json).toMatchObject({ month: '2026-01', by: ['team', 'model'], left_out: 0 })
  const [first, second, third] = json.rows
  expect(first).toMatchObject({
    ...{ group: { team: plane.teamId, model: 'claude-opus-4-1' }, cost: 7, requests: 1, input_tokens: 100 },
    ...{ previous_cost: 22, previous_cost_to_date: 8 },
  })
  // The seven full days before cost 14 and 7; 29 days and 20:56 are left.
  expect(first.forecast).toBeCloseTo(7 + (21 / 7) * 29.872, 1)
  expect(second).toMatchObject({ names: { team: '=Checkout', model: 'claude-haiku-4-5' }, cost: 3, previous_cost: 0 })
  expect(third.group).toEqual({ team: null, model: 'claude-haiku-4-5' })
  expect(json.totals).toMatchObject({ cost: 10.25, requests: 4, previous_cost: 22 })
})

test('reports by any one or two dimensions, and refuses others', async () => {
  const one = await asAdmin('GET', '/v1/usage/costs?month=2025-12&by=provider')
  expect(one.json.rows).toMatchObject([{ group: { provider: 'anthropic' }, cost: 22, forecast: 22, previous_cost: 0 }])
  const two = await asAdmin('GET', '/v1/usage/costs?by=user,gateway')
  expect(two.json.rows[0].names.user).not.toBe(plane.userId)
  for (const [query, param] of [
    ['by=team,model,user', 'by'],
    ['by=team,team', 'by'],
    ['by=weather', 'by'],
    ['month=2026-13', 'month'],
  ]) {
    const refused = await asAdmin('GET', `/v1/usage/costs?${query}`)
    expect([refused.status, refused.json.error.param]).toEqual([422, param])
  }
})

test('reports a dimension of attribution, alone or with teams, and with nothing else', async () => {
  const one = await asAdmin('GET', '/v1/usage/costs?by=dimension:customer')
  expect(one.json.rows).toMatchObject([
    { group: { 'dimension:customer': 'acme' }, names: { 'dimension:customer': 'acme' }, cost: 8, previous_cost: 14 },
    { group: { 'dimension:customer': '=globex' }, cost: 2, requests: 1 },
  ])
  const two = await asAdmin('GET', '/v1/usage/costs?by=team,dimension:customer')
  expect(two.json.rows.map(({ cost }: { cost: number }) => cost)).toEqual([7, 2, 1])
  const { text } = await asAdmin('GET', '/v1/usage/costs/export?by=dimension:customer')
  expect(text.split('\r\n').slice(0, 3)).toEqual([
    expect.stringMatching(/^dimension:customer,requests,/),
    expect.stringMatching(/^acme,2,/),
    expect.stringMatching(/^'=globex,1,/),
  ])
  for (const by of ['model,dimension:customer', 'dimension:a,dimension:b', 'dimension:', 'dimension:A']) {
    expect((await asAdmin('GET', `/v1/usage/costs?by=${by}`)).status).toBe(422)
  }
})

test('gives the report as CSV, in which no name is a formula', async () => {
  const { headers, text } = await asAdmin('GET', '/v1/usage/costs/export?by=team,model')
  expect(headers.get('content-type')).toStartWith('text/csv')
  expect(headers.get('content-disposition')).toBe('attachment; filename="costs-2026-01.csv"')
  const [head, , checkout] = text.split('\r\n')
  expect(head).toBe(
    'team_id,team,model,requests,input_tokens,output_tokens,cost,previous_cost,previous_cost_to_date,forecast',
  )
  expect(checkout).toStartWith(`${otherTeam},'=Checkout,claude-haiku-4-5,2,200,20,3,0,0,`)
})

/** What FOCUS 1.2 requires of every file. */
const mandatory = [
  ...['BilledCost', 'BillingAccountId', 'BillingAccountName', 'BillingCurrency', 'BillingPeriodEnd'],
  ...['BillingPeriodStart', 'ChargeCategory', 'ChargeClass', 'ChargeDescription', 'ChargePeriodEnd'],
  ...['ChargePeriodStart', 'ContractedCost', 'EffectiveCost', 'InvoiceIssuerName', 'ListCost', 'PricingQuantity'],
  ...['PricingUnit', 'ProviderName', 'PublisherName', 'ServiceCategory', 'ServiceName'],
]

test('gives every charge with the columns of FOCUS, which add up to the report', async () => {
  const { text } = await asAdmin('GET', '/v1/usage/costs/export?format=focus')
  const [head = '', ...lines] = text.trimEnd().split('\r\n')
  const names = head.split(',')
  expect(mandatory.filter((name) => !names.includes(name))).toEqual([])
  const place = (name: string) => names.indexOf(name)
  const costs = lines.map((line) => Number(line.split(',')[place('BilledCost')]))
  expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(10.25)
  const first = lines[0]?.split(',') ?? []
  expect(first[place('ChargePeriodStart')]).toBe('2026-01-01T00:00:00Z')
  expect(first[place('ChargePeriodEnd')]).toBe('2026-01-02T00:00:00Z')
  expect(first[place('BillingPeriodEnd')]).toBe('2026-02-01T00:00:00Z')
})

test('a person sees the costs of their own teams', async () => {
  const id = await plane.addPerson('mia@example.com', 'member')
  await asAdmin('POST', `/v1/teams/${otherTeam}/members`, { user_id: id })
  const { cookie } = await plane.signInAs('mia@example.com')
  const { json } = await plane.call('GET', '/v1/usage/costs', { cookie })
  expect(json.totals.cost).toBe(3)
  const { text } = await plane.call('GET', '/v1/usage/costs/export?format=focus', { cookie })
  expect(text).not.toContain('opus')
})

test('tells names of people only to who may read people', async () => {
  const named = async (path: string) => {
    const all = await plane.call('GET', path, { token: plane.adminToken })
    const { cookie } = await plane.signInAs('mia@example.com')
    return [all, await plane.call('GET', path, { cookie })].map(({ text }) => text.includes('Spender'))
  }
  await plane.store.ledger.write([{ sql: "update users set name = 'Spender' where id = ?", args: [plane.userId] }])
  expect(await named('/v1/usage/costs?by=user&month=2026-01')).toEqual([true, false])
  expect(await named('/v1/usage/costs/export?by=user&month=2026-01')).toEqual([true, false])
  expect(await named('/v1/usage/costs/export?format=focus&month=2026-01')).toEqual([true, false])
})

test("compares a provider's invoice with what was booked", async () => {
  const invoice = [
    'usage_date_utc,model,token_type,cost_usd',
    '2026-01-01,Claude Opus 4.1,output,7.00',
    '2026-01-01,Claude Haiku 4.5,output,1.50',
    '2026-01-02,Claude Haiku 4.5,output,2.25',
    '2025-12-31,Claude Opus 4.1,output,99',
  ].join('\n')
  const compare = (provider: string, csv: string) =>
    asAdmin('POST', '/v1/usage/reconciliation', { month: '2026-01', provider, csv })
  expect((await compare('anthropic', invoice)).json).toMatchObject({
    ...{ form: 'Anthropic costs', lines: 3, other_months: 1, alike: 2, left_out: 0 },
    ...{ invoiced: { cost: 10.75 }, booked: { cost: 10.25, input_tokens: 400 } },
    differences: [
      { kind: 'amount', day: '2026-01-01', model: 'claude-haiku-4-5', invoiced: { cost: 1.5 }, booked: { cost: 1 } },
    ],
  })
  expect((await compare('openai', invoice)).json).toMatchObject({
    booked: { cost: null },
    differences: Array(3).fill({ kind: 'only_invoiced' }),
  })
  const refused = await compare('openai', 'a,b\n')
  expect([refused.status, refused.json.error.param]).toEqual([422, 'csv'])
})
