/** Budgets and request limits from outside, in each text language: codes, clamping, sums to the nano-dollar. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { chatAnswer, chatStream } from '../fakes/chat.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
beforeEach(() => upstream.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const families = {
  'chat/completions': { model: 'simulator/lorem', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] },
  responses: { model: 'simulator/lorem', max_output_tokens: 20, input: 'hello' },
  messages: { model: 'simulator/lorem', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] },
} as const
type Path = keyof typeof families

/** The simulator's price is one dollar a million tokens: 1000 nano-dollars a token. */
const tokenPrice = 1e-6
/** What the request costs at most: its bytes, the allowances of a request and a message, and its output. */
const worstCase = (path: Path) => (JSON.stringify(families[path]).length + 64 + 16 + 20) * tokenPrice

const ask = (path: Path, token: string, { body = {}, signal }: { body?: object; signal?: AbortSignal } = {}) =>
  fetch(`${gatehouse.gatewayUrl}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...families[path], ...body }),
    ...(signal && { signal }),
  })

const usageSchema = z.looseObject({ usage: z.looseObject({ total_tokens: z.number() }) })
const settlementsSchema = z.array(z.object({ account: z.string(), amount: z.number() }))
const failure = z.looseObject({ error: z.looseObject({ code: z.string(), type: z.string(), message: z.string() }) })

async function refused(answer: Response) {
  const { error } = failure.parse(await answer.json())
  return [answer.status, error.code, error.type, answer.headers.get('x-should-retry')]
}

const disposable = { key_class: 'disposable', expires_in_seconds: 3600 }
const types: Readonly<Record<Path, readonly [payment: string, billing: string, denied: string, quota: string]>> = {
  'chat/completions': ['payment_required', 'cost_budget_exceeded', 'access_denied', 'insufficient_quota'],
  responses: ['payment_required', 'cost_budget_exceeded', 'access_denied', 'insufficient_quota'],
  messages: ['billing_error', 'billing_error', 'permission_error', 'rate_limit_error'],
}

for (const path of ['chat/completions', 'responses', 'messages'] as const) {
  const [payment, billing, denied, quota] = types[path]
  describe(path, () => {
    test('refuses a request with 402 when the budget cannot pay for its input and one token', async () => {
      const durable = await createToken(gatehouse, { max_budget: worstCase(path) - 20 * tokenPrice })
      const answer = await ask(path, durable.token_value)
      expect(await refused(answer)).toEqual([402, 'usage_authorization_budget_exceeded', payment, 'false'])
      const large = await createToken(gatehouse, { ...disposable, max_budget: worstCase(path) - 20 * tokenPrice })
      const tooLarge = await ask(path, large.token_value)
      expect(await refused(tooLarge)).toEqual([402, 'usage_authorization_budget_exceeded', payment, 'false'])
      const bindings = { provider: 'simulator' }
      const spent = await createToken(gatehouse, { ...disposable, max_budget: 1.9 * tokenPrice, bindings })
      const other = await ask(path, spent.token_value)
      expect(await refused(other)).toEqual([402, 'tokens.budget_exhausted', billing, 'false'])
      for (const [{ id }, status] of [
        [large, 'active'],
        [spent, 'budget_exhausted'],
      ] as const) {
        expect((await api(gatehouse, `/v1/tokens/${id}`)).body).toMatchObject({ status })
      }
    })

    test('refuses requests beyond the limit with 403 or 429 by the class of the key', async () => {
      const once = await createToken(gatehouse, { ...disposable, max_requests: 1 })
      expect((await ask(path, once.token_value)).status).toBe(200)
      const gone = await ask(path, once.token_value)
      expect(await refused(gone)).toEqual([403, 'tokens.request_limit_exhausted', denied, 'false'])
      const durable = await createToken(gatehouse, { max_requests: 1 })
      expect((await ask(path, durable.token_value)).status).toBe(200)
      const over = await ask(path, durable.token_value)
      expect(await refused(over)).toEqual([429, 'usage_authorization_request_limit_exceeded', quota, 'false'])
    })

    test('lowers the output limit to what the budget can pay and states it', async () => {
      const { token_value: token } = await createToken(gatehouse, { max_budget: worstCase(path) - 13 * tokenPrice })
      const answer = await ask(path, token)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-service-max-output-tokens')).toBe('7')
      expect(JSON.stringify(await answer.json())).toMatch(/"(completion_tokens|output_tokens)":7\b/)
    })
  })
}

test('admits of 50 concurrent requests what the budget can pay and books what was answered', async () => {
  const budget = 3 * worstCase('chat/completions')
  const { id, token_value: token } = await createToken(gatehouse, { max_budget: budget })
  const answers = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const answer = await ask('chat/completions', token)
      return { status: answer.status, body: await answer.json() }
    }),
  )
  const answered = answers.filter(({ status }) => status === 200).map(({ body }) => usageSchema.parse(body).usage)
  expect(answered.length).toBeGreaterThanOrEqual(3)
  expect(answers.filter(({ status }) => status !== 200 && status !== 402)).toEqual([])
  const used = answered.reduce((sum, { total_tokens: tokens }) => sum + tokens * 1000, 0)
  expect(used).toBeLessThanOrEqual(Math.round(budget * 1e9))
  const booked = await eventually(() => {
    const settled = eventsInLedger(gatehouse)
      .filter(({ event_attribution: by }) => by.token_id === id)
      .flatMap(({ settlements }) => settlementsSchema.parse(settlements ?? []))
    if (settled.length < answered.length) throw new Error('Not all outcomes have arrived')
    return settled
  })
  expect(booked).toHaveLength(answered.length)
  expect(booked.reduce((sum, { amount }) => sum + amount, 0)).toBe(used)
})

test('treats a budget that pays for no request to any allowed model as used up', async () => {
  const bindings = { provider: 'simulator' }
  const { id } = await createToken(gatehouse, { max_budget: 1.9 * tokenPrice, bindings })
  const { id: enough } = await createToken(gatehouse, { max_budget: 2 * tokenPrice, bindings })
  const tokenSchema = z.looseObject({ id: z.string(), status: z.string() })
  const read = async (token: string) => expectAnswer(await api(gatehouse, `/v1/tokens/${token}`), 200, tokenSchema)
  await until('it shows as used up', async () => (await read(id)).status === 'budget_exhausted')
  expect((await read(enough)).status).toBe('active')
  const page = z.looseObject({ tokens: z.array(tokenSchema) })
  const { tokens } = expectAnswer(await api(gatehouse, '/v1/tokens?status=budget_exhausted'), 200, page)
  expect(tokens.map((token) => token.id)).toContain(id)
  const alerts = JSON.stringify((await api(gatehouse, '/v1/tokens/alerts')).body)
  expect([alerts.includes(id), alerts.includes(enough)]).toEqual([true, false])
  const told = eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'token.exhausted')
  expect(told.filter(({ details }) => details?.token_id === id)).toHaveLength(1)
})

test('states used and reserved amounts to the person who lowers a limit', async () => {
  upstream.when('gpt-4o-mini', { ...streamReply(), stop: { after: 'nothing', by: 'stall' } })
  const { id, token_value: token } = await createToken(gatehouse, { max_requests: 10 })
  const abort = new AbortController()
  const running = ask('chat/completions', token, { body: { model: 'gpt-4o-mini' }, signal: abort.signal })
  running.catch(() => undefined)
  await until('the request is with the provider', () => upstream.running() === 1)
  const lowered = await api(gatehouse, `/v1/tokens/${id}`, { method: 'PATCH', body: { max_requests: 5 } })
  abort.abort()
  expect(lowered.body).toMatchObject({ usage: { requests: { used: 0, open: 1 }, budget: null } })
})

test('keeps a budget open after a provider charged more than its list price, and reserves the excess later', async () => {
  const usage = { prompt_tokens: 10, completion_tokens: 100_000, total_tokens: 100_010 }
  upstream.when('gpt-4o-mini', jsonReply(Buffer.from(JSON.stringify({ ...JSON.parse(String(chatAnswer())), usage }))))
  const { id, token_value: token } = await createToken(gatehouse, { max_budget: 1 })
  const body = { model: 'gpt-4o-mini' }
  expect((await ask('chat/completions', token, { body })).status).toBe(200)
  const refusal = await eventually(async () => {
    const { token_value: small } = await createToken(gatehouse, { max_budget: 0.03 })
    const answer = await ask('chat/completions', small, { body })
    if (answer.status !== 402) throw new Error('The gateway has not read the excess yet')
    return failure.parse(await answer.json())
  })
  expect(refusal.error.message).toContain('charged beyond its list price')
  expect((await ask('chat/completions', token, { body })).status).toBe(200)
  const told = eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'usage.bound_exceeded')
  expect(told).toMatchObject([{ details: { model: 'gpt-4o-mini' } }])
  const alerts = JSON.stringify((await api(gatehouse, '/v1/tokens/alerts')).body)
  expect(alerts).toContain(`{"condition":"bound_exceeded","token_id":"${told[0]?.event_attribution.token_id}"`)
  const listed = z.looseObject({ excesses: z.array(z.looseObject({ provider_id: z.string(), model: z.string() })) })
  const [excess] = expectAnswer(await api(gatehouse, '/v1/usage/excesses'), 200, listed).excesses
  const forgotten = { provider_id: excess?.provider_id, model: excess?.model }
  expect((await api(gatehouse, '/v1/usage/forget-excess', { body: forgotten })).status).toBe(200)
  upstream.when('gpt-4o-mini', jsonReply())
  const { token_value: later } = await createToken(gatehouse, { max_budget: 0.03 })
  await until('the gateway has forgotten the excess', async () => {
    // An answer from before may be booked only now, and its excess be remembered again.
    await api(gatehouse, '/v1/usage/forget-excess', { body: forgotten })
    return (await ask('chat/completions', later, { body })).status === 200
  })
  const record = z.looseObject({ depletion: z.looseObject({ current_spend: z.number() }), status: z.string() })
  await until('both answers are booked in full', async () => {
    const { depletion, status } = expectAnswer(await api(gatehouse, `/v1/tokens/${id}`), 200, record)
    return status === 'active' && depletion.current_spend > 0.12
  })
})

test('a provider with a hidden prompt that grows leaves a company’s monthly budget open while money is left', async () => {
  const model = 'gpt-4.1-mini'
  let hidden = 0
  upstream.when(model, () => {
    hidden += 5000
    const usage = { prompt_tokens: hidden, completion_tokens: 5, total_tokens: hidden + 5 }
    return jsonReply(chatAnswer({ usage }))
  })
  const team = await api(gatehouse, '/v1/teams', { body: { name: 'with a large budget' } })
  const { id: teamId } = expectAnswer(team, 201, z.looseObject({ id: z.uuid() }))
  const body = { name: 'large', max_budget: 500, window: 'month', scope: { kind: 'team', id: teamId } }
  const { id } = expectAnswer(await api(gatehouse, '/v1/budgets', { body }), 201, z.looseObject({ id: z.uuid() }))
  const { token_value: token } = await createToken(gatehouse, { bindings: { team_id: teamId } })
  const outcomes = () =>
    eventsInLedger(gatehouse).filter(({ settlements }) => JSON.stringify(settlements ?? []).includes(`budget/${id}`))
  await until('requests draw on the budget', async () => {
    expect((await ask('chat/completions', token, { body: { model } })).status).toBe(200)
    return outcomes().length > 0
  })
  for (let count = 0; count < 30; count++) {
    expect((await ask('chat/completions', token, { body: { model } })).status).toBe(200)
  }
  const cost = () =>
    outcomes().reduce((sum, { event_cost_attribution: by }) => sum + Math.round(Number(by?.cost ?? 0) * 1e9), 0)
  const accounts = z.looseObject({ accounts: z.array(z.object({ account: z.string(), settled: z.number() }).loose()) })
  await until('the account holds exactly what they cost', async () => {
    if (outcomes().length < 30) return false
    const page = await api(gatehouse, `/v1/usage/accounts?prefix=budget/${id}`)
    return expectAnswer(page, 200, accounts).accounts.some(({ settled }) => settled === cost())
  })
  const told = eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'usage.bound_exceeded')
  expect(told.some(({ details }) => details?.model === model)).toBe(true)
})

test('counts tokens with the model’s tokenizer when the budget does not pay for one token a byte', async () => {
  const usage = { prompt_tokens: 4007, completion_tokens: 5, total_tokens: 4012 }
  upstream.when('gpt-4o', jsonReply(chatAnswer({ usage })))
  const text = 'The quick brown fox jumps over the lazy dog. '.repeat(400)
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: text }] }
  // 2.50 dollars a million tokens in, 10 out: its 18 000 bytes would be 0.045 dollars, its 4000 tokens are 0.010.
  const enough = await createToken(gatehouse, { ...disposable, max_budget: 0.02 })
  expect((await ask('chat/completions', enough.token_value, { body })).status).toBe(200)
  const small = await createToken(gatehouse, { ...disposable, max_budget: 0.008 })
  const answer = await ask('chat/completions', small.token_value, { body })
  const { error } = failure.parse(await answer.json())
  expect([answer.status, error.code]).toEqual([402, 'usage_authorization_budget_exceeded'])
  const counted = Number(/with (\d+) tokens of input, as the model's tokenizer counts them/.exec(error.message)?.[1])
  expect(counted).toBeGreaterThanOrEqual(usage.prompt_tokens)
  expect(counted).toBeLessThan(1.1 * usage.prompt_tokens)
  expect(upstream.calls).toHaveLength(1)
  expect((await api(gatehouse, `/v1/tokens/${small.id}`)).body).toMatchObject({ status: 'active' })
  expect(JSON.stringify((await api(gatehouse, '/v1/tokens/alerts')).body)).not.toContain(
    `"budget_exhausted","token_id":"${small.id}"`,
  )
  await until('what the provider reported is booked', async () => {
    const { body: record } = await api(gatehouse, `/v1/tokens/${enough.id}`)
    const spent = z.looseObject({ depletion: z.looseObject({ current_spend: z.number() }) }).parse(record)
    return spent.depletion.current_spend === (4007 * 2500 + 5 * 10_000) / 1e9
  })
})

test('a team budget with a window refuses with Retry-After, and error and event name it', async () => {
  // Not the team that owns the tokens of the other tests: the budget would refuse those too.
  const team = await api(gatehouse, '/v1/teams', { body: { name: 'with a small budget' } })
  const { id: teamId } = expectAnswer(team, 201, z.looseObject({ id: z.uuid() }))
  const scope = { kind: 'team', id: teamId }
  const max_budget = 50 * tokenPrice
  const body = { name: 'small', max_budget, window: 'day', scope }
  expectAnswer(await api(gatehouse, '/v1/budgets', { body }), 201, z.looseObject({ id: z.uuid() }))
  const { token_value: token } = await createToken(gatehouse, { bindings: { team_id: teamId } })
  const answer = await eventually(async () => {
    const found = await ask('chat/completions', token)
    if (found.status !== 402) throw new Error('The gateway has not read the budget yet')
    return found
  })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  const { error } = failure.parse(await answer.json())
  expect(error.code).toBe('usage_authorization_budget_exceeded')
  const words =
    /^The budget "small" of the team cannot pay for this request: \$0 of \$0.00005 is used, and it resets at /
  expect(error.message).toMatch(words)
  expect(error.message).not.toContain('The limit is of')
  for (const path of ['responses', 'messages'] as const) {
    expect(failure.parse(await (await ask(path, token)).json()).error.message).toMatch(words)
  }
  const requestId = answer.headers.get('x-request-id') ?? ''
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  expect(outcome?.details?.limit).toMatchObject({
    kind: 'budget',
    name: 'small',
    scope,
    unit: 'usd',
    limit: expect.closeTo(max_budget, 9),
  })
})

test('lists every limit that applies to a token, with what is used, also to a member who has only the token', async () => {
  const identified = z.looseObject({ id: z.uuid() })
  const make = async (path: string, body: object): Promise<string> =>
    expectAnswer(await api(gatehouse, path, { body }), 201, identified).id
  const teamId = await make('/v1/teams', { name: 'of three budgets' })
  const email = 'spender@example.com'
  const userId = await make('/v1/users', { email, name: 'Sue', password: 'a long enough secret 7', role: 'member' })
  await api(gatehouse, `/v1/teams/${teamId}/members`, { body: { user_id: userId } })
  await make('/v1/attribution-dimensions', { name: 'plan', source: { kind: 'token_metadata', key: 'plan' } })
  const ofTeam = await make('/v1/budgets', {
    ...{ name: 'team money', max_budget: 5, window: 'month', scope: { kind: 'team', id: teamId } },
  })
  const ofPlan = await make('/v1/budgets', {
    ...{ name: 'each plan', max_budget: 3, window: 'day', scope: { kind: 'user', id: userId }, per: 'plan' },
  })
  const shared = await make('/v1/budgets', { name: 'shared', max_budget: 2, window: 'total', scope: { kind: 'token' } })
  const group = await make('/v1/consumer-groups', {
    ...{ name: 'slow ones', requests_per_minute: 60, members: { teams: [teamId], users: [], tokens: [] } },
  })
  const source = await createToken(gatehouse, {
    ...{ name: 'Source', max_requests: 9, max_budget: 1, metadata: { plan: 'gold' } },
    bindings: { team_id: teamId, user_id: userId, budget_id: shared },
  })
  const cloned = await api(gatehouse, `/v1/tokens/${source.id}/clone`, { body: { name: 'Clone', max_requests: 4 } })
  const clone = expectAnswer(cloned, 201, z.looseObject({ id: z.uuid(), token_value: z.string() }))
  const answer = await eventually(async () => {
    const found = await ask('chat/completions', clone.token_value)
    if (found.status !== 200) throw new Error(`The gateway has not read the token yet: ${found.status}`)
    return found
  })
  const { usage } = usageSchema.parse(await answer.json())
  const used = expect.closeTo(usage.total_tokens * tokenPrice, 9)
  const limit = (fields: object) => expect.objectContaining(fields)
  const scope = { kind: 'team', id: teamId, name: 'of three budgets' }
  const expected = [
    limit({
      kind: 'max_requests',
      id: clone.id,
      scope: { kind: 'token', id: clone.id, name: 'Clone' },
      used: 1,
      left: 3,
    }),
    limit({
      kind: 'max_budget',
      id: source.id,
      scope: { kind: 'token', id: source.id, name: 'Source' },
      used,
      limit: 1,
    }),
    limit({ kind: 'max_requests', id: source.id, used: 1, limit: 9 }),
    limit({ kind: 'budget', id: ofTeam, name: 'team money', scope, window: 'month', limit: 5, used }),
    limit({ kind: 'budget', id: ofPlan, window: 'day', per: { dimension: 'plan', value: 'gold' }, used }),
    limit({ kind: 'budget', id: shared, scope: { kind: 'token', id: null, name: null }, resets_at: null, used }),
    limit({ kind: 'consumer_group', id: group, unit: 'requests', window: 'minute', limit: 60, used: null }),
  ]
  const limits = z.object({ limits: z.array(z.looseObject({ kind: z.string() })) })
  const path = `/v1/tokens/${clone.id}/limits`
  const read = async (headers?: Record<string, string>) =>
    expectAnswer(await api(gatehouse, path, headers === undefined ? {} : { token: null, headers }), 200, limits).limits
  await eventually(async () => expect(await read()).toEqual(expect.arrayContaining(expected)))
  expect((await read()).filter(({ kind }) => kind === 'budget')).toHaveLength(3)
  expect(await read({ authorization: `Bearer ${clone.token_value}` })).toEqual(await read())
  const other = await createToken(gatehouse)
  const refused = await api(gatehouse, path, { token: null, headers: { authorization: `Bearer ${other.token_value}` } })
  expect(refused.status).toBe(404)
})

test('charges a client that disconnects from a stream for the input and the produced output', async () => {
  // The test of excesses uses the model without the date: a late report of one would make this request dearer.
  const model = 'gpt-4o-mini-2024-07-18'
  const parts = ['four', 'more', 'here']
  upstream.when(model, {
    ...streamReply(chatStream({ parts, usage: null })),
    split: (bytes) => [Buffer.from(bytes).indexOf('here')],
    stop: { after: 1, by: 'stall' },
  })
  const { token_value: token } = await createToken(gatehouse, { max_budget: 5 })
  const abort = new AbortController()
  const body = { model, max_tokens: 1000, stream: true }
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': 'left-early' },
    body: JSON.stringify({ ...families['chat/completions'], ...body }),
    signal: abort.signal,
  })
  await answer.body?.getReader().read()
  abort.abort()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'left-early'), 'left-early')
  expect(outcome?.reason_code).toBe('client.left')
  const { cost } = z.looseObject({ cost: z.number() }).parse(outcome?.event_cost_attribution)
  // 0.15 dollars a million tokens in, 0.60 out.
  expect(cost).toBeGreaterThan(2 * 150e-9)
  expect(cost).toBeLessThan(50 * 600e-9)
})
