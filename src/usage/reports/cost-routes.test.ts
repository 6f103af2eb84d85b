import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import { otherKey } from '../../events/rollups/rollup.ts'
import { declareDimensions } from '../../events/testing/ledger.ts'
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
  await declareDimensions(plane.store.state, 'customer', 'feature')
  await asAdmin('POST', '/v1/catalog/providers', { name: 'openai', kind: 'openai' })
  otherTeam = (await asAdmin('POST', '/v1/teams', { name: '=Checkout' })).json.id
  const spend = async (
    at: string,
    team: string | null,
    model: string,
    cost: number,
    dimensions?: Record<string, string>,
  ) => {
    const event: Event = {
      ...{ event_id: crypto.randomUUID(), event_type: 'gateway.request.outcome', request_id: null, config_version: 1 },
      ...{ timestamp: at, verdict: 'allow', reason_code: 'ok' },
      event_attribution: {
        ...{ ...noAttribution, team_id: team, user_id: plane.userId, gateway_id: plane.gatewayId },
        ...(dimensions !== undefined && { dimensions }),
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
  await spend('2025-12-31T10:00:00.000Z', plane.teamId, 'claude-opus-4-1', 14, { customer: 'acme' })
  await spend('2026-01-01T10:00:00.000Z', plane.teamId, 'claude-opus-4-1', 7, { customer: 'acme', feature: 'search' })
  await spend('2026-01-01T11:00:00.000Z', otherTeam, 'claude-haiku-4-5', 1, { customer: 'acme' })
  await spend('2026-01-02T01:00:00.000Z', otherTeam, 'claude-haiku-4-5', 2, { customer: '=globex', feature: 'search' })
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

test('reports a dimension of attribution, with a row for requests without a value', async () => {
  const { json } = await asAdmin('GET', '/v1/usage/costs?by=dimension:customer')
  expect(json.rows).toMatchObject([
    { group: { 'dimension:customer': 'acme' }, names: { 'dimension:customer': 'acme' }, cost: 8, previous_cost: 14 },
    { group: { 'dimension:customer': '=globex' }, cost: 2, requests: 1 },
    { group: { 'dimension:customer': null }, cost: 0.25, requests: 1, previous_cost: 8 },
  ])
  const { text } = await asAdmin('GET', '/v1/usage/costs/export?by=dimension:customer')
  expect(text.split('\r\n').slice(0, 4)).toEqual([
    expect.stringMatching(/^dimension:customer,requests,/),
    expect.stringMatching(/^acme,2,/),
    expect.stringMatching(/^'=globex,1,/),
    expect.stringMatching(/^,1,/),
  ])
})

test('reports a dimension of attribution with any other dimension', async () => {
  const rows = async (by: string) => {
    const { json } = await asAdmin('GET', `/v1/usage/costs?by=${by}`)
    return json.rows.map(({ group, cost }: { group: object; cost: number }) => [...Object.values(group), cost])
  }
  expect(await rows('model,dimension:customer')).toEqual([
    ['claude-opus-4-1', 'acme', 7],
    ['claude-haiku-4-5', '=globex', 2],
    ['claude-haiku-4-5', 'acme', 1],
    ['claude-haiku-4-5', null, 0.25],
    ['claude-opus-4-1', null, 0],
  ])
  expect(await rows('dimension:feature,dimension:customer')).toEqual([
    ['search', 'acme', 7],
    ['search', '=globex', 2],
    [null, 'acme', 1],
    [null, null, 0.25],
  ])
})

test('refuses a dimension that is not declared and names those that are', async () => {
  for (const by of ['dimension:nope', 'team,dimension:nope', 'dimension:', 'dimension:Customer']) {
    for (const path of ['/v1/usage/costs', '/v1/usage/costs/export']) {
      const { status, json } = await asAdmin('GET', `${path}?by=${by}`)
      expect([status, json.error.param]).toEqual([422, 'by'])
      expect(json.error.message).toContain('declared are dimension:customer, dimension:feature')
    }
  }
})

test('tells a value that is called other from the values beyond those that a day keeps', async () => {
  const plain = ['anthropic', 'm', 'token', 'gateway', 'user'].join('\u001f')
  const key = (values: object) => `${plain}\u001e${JSON.stringify(values)}`
  const keys = [{ customer: 'other' }, { customer: otherKey }, { customer: otherKey, feature: otherKey }].map(key)
  const rows = `kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost)
    select 'cost', 'day', '', ?, value, '', 1, 0, 0, 1000000000 * (1 << key) from json_each(?)`
  const at = Date.parse('2025-11-03')
  await plane.store.ledger.write([{ sql: `insert into event_rollups (${rows}`, args: [at, JSON.stringify(keys)] }])
  const path = (rest: string, by: string) => `/v1/usage/costs${rest}?month=2025-11&by=${by}`
  const { json } = await asAdmin('GET', path('', 'dimension:customer'))
  expect(json.rows).toMatchObject([
    { group: { 'dimension:customer': 'other' }, names: { 'dimension:customer': 'other values' }, rest: true, cost: 6 },
    { group: { 'dimension:customer': 'other' }, names: { 'dimension:customer': 'other' }, rest: false, cost: 1 },
  ])
  const two = await asAdmin('GET', path('', 'model,dimension:feature'))
  expect(two.json.rows).toMatchObject([
    { group: { model: 'm', 'dimension:feature': 'other' }, rest: true, cost: 4 },
    { group: { model: 'm', 'dimension:feature': null }, rest: false, cost: 3 },
  ])
  const byModel = await asAdmin('GET', path('', 'model'))
  expect(byModel.json.rows).toMatchObject([{ rest: false, cost: 7 }])
  const { text } = await asAdmin('GET', path('/export', 'dimension:customer'))
  expect(text.split('\r\n').map((line) => [line.split(',')[0], line.split(',').at(-1)])).toEqual([
    ['dimension:customer', 'rest'],
    ['other', 'true'],
    ['other', 'false'],
    ['', ''],
  ])
})

test('reports a deleted dimension, whose sums are kept', async () => {
  const set = (deleted: number) =>
    plane.store.state.write([
      { sql: "update attribution_dimensions set deleted = ? where name = 'feature'", args: [deleted] },
    ])
  await set(1)
  const { status, json } = await asAdmin('GET', '/v1/usage/costs?by=dimension:feature')
  const csv = await asAdmin('GET', '/v1/usage/costs/export?by=dimension:feature')
  await set(0)
  expect([status, json.rows?.[0]?.group, csv.status]).toEqual([200, { 'dimension:feature': 'search' }, 200])
})

test('refuses a month that has not begun', async () => {
  const { status, json } = await asAdmin('GET', '/v1/usage/costs?month=2026-02')
  expect([status, json.error]).toMatchObject([422, { param: 'month', message: '2026-02 has not begun: it is 2026-01' }])
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

test('FOCUS has the values of dimensions in Tags, and is refused with by', async () => {
  const { text } = await asAdmin('GET', '/v1/usage/costs/export?format=focus')
  expect(text).toContain('"{""customer"":""acme"",""feature"":""search"",""gatehouse/gateway_id"":')
  expect(text).toContain('"{""customer"":""=globex"",""feature"":""search"",')
  const refused = await asAdmin('GET', '/v1/usage/costs/export?format=focus&by=team')
  expect([refused.status, refused.json.error.param]).toEqual([422, 'by'])
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
  const unknown = await compare('nope', invoice)
  expect([unknown.status, unknown.json.error.param]).toEqual([422, 'provider'])
  expect(unknown.json.error.message).toContain('Providers are: anthropic, openai')
  expect((await compare('openai', invoice)).json).toMatchObject({
    booked: { cost: null },
    differences: Array(3).fill({ kind: 'only_invoiced' }),
  })
  const future = { month: '2026-02', provider: 'anthropic', csv: invoice }
  const early = await asAdmin('POST', '/v1/usage/reconciliation', future)
  expect(early.json.error).toMatchObject({ param: 'month', message: '2026-02 has not begun: it is 2026-01' })
  const refused = await compare('openai', 'a,b\n')
  expect([refused.status, refused.json.error.param]).toEqual([422, 'csv'])
})

test('compares a model of the catalog by the name that the provider of the invoice has for it', async () => {
  const [own, other] = [crypto.randomUUID(), crypto.randomUUID()]
  const targets = JSON.stringify([
    { provider_id: other, upstream_model: 'gpt-x', weight: 1, tier: 1 },
    { provider_id: own, upstream_model: 'opus-by-contract', weight: 1, tier: 1 },
  ])
  await plane.store.state.write([
    {
      sql: "insert into providers (id, name, kind, position, version) values (?, 'anthropic', 'anthropic', 9, 1)",
      args: [own],
    },
    {
      sql: `insert into models (id, provider_id, upstream_model, targets, created_at, version)
        values ('claude-opus-4-1', ?, 'gpt-x', ?, 0, 1)`,
      args: [other, targets],
    },
  ])
  const csv = 'usage_date_utc,model,token_type,cost_usd\n2026-01-01,opus-by-contract,output,7.00\n'
  const body = { month: '2026-01', provider: 'anthropic', csv }
  const { json } = await asAdmin('POST', '/v1/usage/reconciliation', body)
  expect([json.alike, json.differences.map(({ model }: { model: string }) => model)]).toEqual([
    1,
    ['claude-haiku-4-5', 'claude-haiku-4-5'],
  ])
})
