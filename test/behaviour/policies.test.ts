import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let token: string

beforeAll(async () => {
  gatehouse = await startGatehouse()
  token = (await createToken(gatehouse)).token_value
  for (const policy of policies) await makePolicy(policy)
  await eventually(
    async () => {
      const { status } = await ask('chat', 'please-block')
      if (status !== 400) throw new Error(`The gateway does not have the policies yet: ${status}`)
    },
    { withinMs: 30_000 },
  )
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
})

const record = z.looseObject({ id: z.uuid(), name: z.string(), version: z.number(), order: z.number() })

const makePolicy = async (body: object) => expectAnswer(await api(gatehouse, '/v1/policies', { body }), 201, record)

const verdicts = ['block', 'deny', 'escalate', 'rate_limit'] as const

const onRequest = verdicts.map((verdict) => ({
  name: `request ${verdict}`,
  kind: 'condition',
  stages: ['pre_request'],
  when: `request.text.contains("please-${verdict}")`,
  config: { verdict, reason_code: `test.${verdict}`, message: `Refused by ${verdict}` },
}))

const withOutput = ['chat', 'responses', 'messages']

const onAnswer = (['block', 'escalate'] as const).map((verdict) => ({
  name: `answer ${verdict}`,
  kind: 'condition',
  stages: ['pre_response'],
  when: `response.text.contains("answer-${verdict}")`,
  targets: { families: withOutput },
  config: { verdict, reason_code: `test.answer_${verdict}` },
}))

const policies: object[] = [
  ...onRequest,
  ...onAnswer,
  {
    name: 'monitored',
    kind: 'condition',
    stages: ['pre_request'],
    mode: 'monitor',
    when: 'request.text.contains("please-look")',
    config: { verdict: 'block', reason_code: 'test.monitored' },
  },
  {
    name: 'other words',
    kind: 'response-rewrite',
    stages: ['pre_response'],
    targets: { families: withOutput },
    config: { replacements: [{ find: 'secret-plan', replace: 'plan' }] },
  },
]

const bodies: Record<string, { path: string; body(text: string): object }> = {
  chat: { path: '/v1/chat/completions', body: (content) => ({ messages: [{ role: 'user', content }] }) },
  responses: { path: '/v1/responses', body: (input) => ({ input }) },
  messages: {
    path: '/v1/messages',
    body: (content) => ({ max_tokens: 100, messages: [{ role: 'user', content }] }),
  },
  embeddings: { path: '/v1/embeddings', body: (input) => ({ input }) },
  completions: { path: '/v1/completions', body: (prompt) => ({ prompt }) },
  moderations: { path: '/v1/moderations', body: (input) => ({ input }) },
  speech: { path: '/v1/audio/speech', body: (input) => ({ input, voice: 'alloy' }) },
}

interface Options {
  stream?: boolean
  requestId?: string
  secret?: string
}

function ask(family: string, text: string, { stream, requestId, secret = token }: Options = {}): Promise<Response> {
  const known = bodies[family]
  if (known === undefined) throw new Error(`No body for ${family}`)
  return fetch(`${gatehouse.gatewayUrl}${known.path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      ...(requestId && { 'x-request-id': requestId }),
    },
    body: JSON.stringify({ model: 'simulator/echo', ...known.body(text), ...(stream && { stream }) }),
  })
}

const families = Object.keys(bodies)

test.each(families)(
  'on %s a block is 400 content_policy_violation with the verdict at the top of the body',
  async (family) => {
    const answer = await ask(family, 'please-block this')
    expect(answer.status).toBe(400)
    expect(answer.headers.get('x-service-verdict')).toBe('BLOCK')
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(await answer.json()).toMatchObject({
      error: { code: 'content_policy_violation', type: 'invalid_request_error', message: 'Refused by block' },
      verdictan: { verdict: 'BLOCK', reason_code: 'test.block' },
    })
  },
)

test.each(families)('on %s a denial is 403 and a rate limit 429', async (family) => {
  const denied = await ask(family, 'please-deny this')
  expect([denied.status, denied.headers.get('x-service-verdict')]).toEqual([403, 'DENY'])
  expect(await denied.json()).toMatchObject({ error: { code: 'policy_denied' } })
  const limited = await ask(family, 'please-rate_limit this')
  expect([limited.status, limited.headers.get('x-service-verdict')]).toEqual([429, 'RATE_LIMIT'])
  expect(await limited.json()).toMatchObject({ error: { code: 'policy_rate_limited' } })
})

const queued = { verdict: 'ESCALATE', reason_code: 'test.escalate', escalation: { status: 'queued' } }

test.each([
  ['chat', { choices: [{ message: { content: null }, finish_reason: 'content_filter' }] }],
  ['messages', { content: [], stop_reason: 'refusal' }],
  [
    'responses',
    { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, output: [{ role: 'assistant' }] },
  ],
  [
    'completions',
    { choices: [{ text: expect.stringContaining('A reviewer has to decide'), finish_reason: 'content_filter' }] },
  ],
])('on %s an escalation is 200 in the form of the family', async (family, form) => {
  const answer = await ask(family, 'please-escalate this')
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
  expect(await answer.json()).toMatchObject({ ...form, verdictan: queued })
})

test.each(['embeddings', 'moderations', 'speech'])(
  'on %s, which has no escalation form, an escalation is 403',
  async (family) => {
    const answer = await ask(family, 'please-escalate this')
    expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([403, 'ESCALATE'])
    expect(await answer.json()).toMatchObject({ error: { code: 'policy.escalated' }, verdictan: queued })
  },
)

test.each(withOutput)('on %s a blocked answer is never sent, whole or streamed', async (family) => {
  const whole = await ask(family, 'answer-block')
  expect(whole.status).toBe(400)
  expect(await whole.text()).not.toContain('answer-block')
  const streamed = await ask(family, 'answer-block', { stream: true })
  const text = await streamed.text()
  expect(text).not.toContain('answer-block')
  expect(text).toContain('content_policy_violation')
  expect(text).toContain('"reason_code":"test.answer_block"')
})

test.each(withOutput)('on %s an escalated answer has the escalation form', async (family) => {
  for (const stream of [false, true]) {
    const answer = await ask(family, 'answer-escalate', { stream })
    const text = await answer.text()
    expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
    expect(text).toContain('test.answer_escalate')
    expect(text).not.toContain('answer-escalate')
  }
})

test.each(withOutput)('on %s texts of an answer are replaced, whole and streamed', async (family) => {
  for (const stream of [false, true]) {
    const text = await (await ask(family, 'the secret-plan is secret-planned', { stream })).text()
    expect(text).not.toContain('secret-plan')
    expect(text).toContain('planned')
  }
})

test('a monitor-only finding passes and is recorded', async () => {
  const answer = await ask('chat', 'please-look', { requestId: 'monitored-1' })
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ALLOW'])
  await answer.text()
  const events = await eventsOfRequest(gatehouse, 'monitored-1')
  const decision = events.find(({ event_type }) => event_type === 'decision')
  expect(decision).toMatchObject({ verdict: 'block', reason_code: 'test.monitored', details: { mode: 'monitor' } })
  const outcome = events.find(({ event_type }) => event_type === 'gateway.request.outcome')
  expect(outcome).toMatchObject({ verdict: 'allow', reason_code: 'ok' })
  expect(outcome?.details?.policy_results).toContainEqual(
    expect.objectContaining({ verdict: 'block', mode: 'monitor' }),
  )
})

test('a blocked request has a decision and an outcome, and no provider is called', async () => {
  await (await ask('chat', 'please-block', { requestId: 'blocked-1' })).text()
  const events = await eventsOfRequest(gatehouse, 'blocked-1')
  expect(events.map(({ event_type, verdict }) => [event_type, verdict]).toSorted()).toEqual([
    ['decision', 'block'],
    ['gateway.request.outcome', 'block'],
  ])
  expect(events.every(({ config_version }) => config_version >= policies.length)).toBe(true)
})

test('a family without a stage of the chain is refused before the provider call', async () => {
  const made = await makePolicy({
    name: 'answers of all families',
    kind: 'audit',
    stages: ['pre_response'],
    mode: 'monitor',
    when: 'false',
    targets: { tokens: [] },
    config: {},
  })
  const { token_value: secret } = await createToken(gatehouse, { policy_ids: [made.id] })
  await eventually(
    async () => {
      const answer = await ask('embeddings', 'hello', { secret })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ error: { code: 'policy.incompatible_active_chain' } })
    },
    { withinMs: 30_000 },
  )
  expect((await ask('embeddings', 'hello')).status).toBe(200)
  expect((await ask('chat', 'hello', { secret })).status).toBe(200)
})
