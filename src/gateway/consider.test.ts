import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { compilePolicySet } from '../policies/chain.ts'
import type { StoredPolicy } from '../policies/stored-policy.ts'
import { type Demand, type Reservation, UsageRefused } from '../usage/allowance.ts'
import { completion, question, startTestGateway, type TestGateway } from './test-gateway.ts'
import { testModel } from './test-lane.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const policy = (change: Partial<StoredPolicy> & Pick<StoredPolicy, 'id' | 'kind' | 'config'>): StoredPolicy => ({
  stages: ['pre_request'],
  when: null,
  targets: {},
  position: 1,
  mode: 'enforce',
  whenBroken: 'deny',
  enabled: true,
  version: 1,
  ...change,
})

const frame = (data: object | '[DONE]') => `data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`
const streamOf = (...parts: string[]): string =>
  [
    ...parts.map((content) =>
      frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] }),
    ),
    frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    frame('[DONE]'),
  ].join('')

const eventStream = { headers: { 'content-type': 'text/event-stream' } }

async function start(
  policies: StoredPolicy[],
  answer: () => Response | Promise<Response> = () => Response.json(completion),
  settings: Parameters<typeof startTestGateway>[1] = {},
): Promise<TestGateway> {
  running = await startTestGateway(answer, settings)
  running.lane.policies = compilePolicySet(policies)
  return running
}

const textIn = (body: string): string =>
  [...body.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data = '']) => JSON.parse(data).choices?.[0]?.delta?.content ?? '')
    .join('')

test('redaction changes the member it found something in, and every other byte reaches the provider as it came', async () => {
  const gateway = await start([policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact' } })])
  const body = `{ "model":"gpt-test",  "temperature" : 1.0, "messages": [{"role":"user","content":"Write to ann@example.com"}], "x": {"y": 1e2} }`
  const answer = await gateway.chat(body)
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'REDACT'])
  expect(gateway.seen[0]?.body).toBe(
    `{ "model":"gpt-test",  "temperature" : 1.0, "messages": [{"role":"user","content":"Write to [EMAIL]"}], "x": {"y": 1e2} }`,
  )
  const [outcome] = gateway.lane.journal.outcomes()
  expect(outcome).toMatchObject({ verdict: 'redact', reason_code: 'policy.pii' })
  expect(JSON.stringify([...gateway.lane.journal.closed.values()])).not.toContain('ann@example.com')
})

test('what was redacted is put back in the answer where the policy asks for it, whole and streamed', async () => {
  let stream = false
  const gateway = await start(
    [policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact', restore: true } })],
    () =>
      stream
        ? new Response(streamOf('Sent to [EM', 'AIL_', '1] now, not [EMAIL_2]'), eventStream)
        : Response.json({
            ...completion,
            choices: [{ index: 0, message: { role: 'assistant', content: 'To [EMAIL_1]' } }],
          }),
  )
  const messages = [{ role: 'user', content: 'Write to ann@example.com' }]
  const whole = await gateway.chat({ model: 'gpt-test', messages })
  expect(await whole.json()).toMatchObject({ choices: [{ message: { content: 'To ann@example.com' } }] })
  expect(gateway.seen[0]?.body).toContain('[EMAIL_1]')
  stream = true
  const streamed = await gateway.chat({ model: 'gpt-test', messages, stream })
  expect(textIn(await streamed.text())).toBe('Sent to ann@example.com now, not [EMAIL_2]')
})

test('redact and rewrite feed the next policy', async () => {
  const gateway = await start([
    policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact' } }),
    policy({
      id: 'b',
      kind: 'condition',
      position: 2,
      when: 'request.text.contains("@")',
      config: { verdict: 'block', reason_code: 'a.b' },
    }),
    policy({
      id: 'c',
      kind: 'request-rewrite',
      position: 3,
      config: { set: { temperature: 0 }, at_most: { max_tokens: 5 }, remove: ['user'], system_prefix: 'Be brief' },
    }),
  ])
  const messages = [{ role: 'user', content: 'ann@example.com' }]
  const answer = await gateway.chat({ model: 'gpt-test', messages, max_tokens: 100, user: 'u' })
  expect(answer.status).toBe(200)
  expect(JSON.parse(gateway.seen[0]?.body ?? '')).toEqual({
    model: 'gpt-test',
    messages: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: '[EMAIL]' },
    ],
    max_tokens: 5,
    temperature: 0,
  })
})

test('a policy that throws follows when_broken, and is an event either way', async () => {
  for (const whenBroken of ['deny', 'allow'] as const) {
    const gateway = await start([
      policy({ id: 'a', kind: 'audit', config: {}, when: 'request.headers["x-nowhere"] == "y"', whenBroken }),
    ])
    const answer = await gateway.chat(question)
    expect(answer.status).toBe(whenBroken === 'deny' ? 403 : 200)
    const events = [...gateway.lane.journal.refused, ...[...gateway.lane.journal.closed.values()].flat()]
    const decision = events.find(({ event_type }) => event_type === 'decision')
    expect(decision).toMatchObject({ reason_code: 'policy.broken', verdict: whenBroken })
    await gateway.stop()
    running = null
  }
})

test('a term that a policy blocks leaves a stream with no part of it, wherever the provider cuts it', async () => {
  const term = policy({
    id: 'a',
    kind: 'term-filter',
    stages: ['pre_response'],
    config: { terms: ['swordfish'], action: 'block' },
  })
  const text = 'The word is swordfish, I think'
  for (let at = 1; at < text.length; at++) {
    const gateway = await start([term], () => new Response(streamOf(text.slice(0, at), text.slice(at)), eventStream))
    const body = await (await gateway.chat({ ...question, stream: true })).text()
    expect(textIn(body)).toBe('The word is ')
    expect(body).toEndWith('data: [DONE]\n\n')
    expect(body).toContain('"content_policy_violation"')
    expect(gateway.lane.journal.outcomes()).toMatchObject([{ verdict: 'block', reason_code: 'policy.term_filter' }])
    await gateway.stop()
    running = null
  }
})

test('a stream that a policy must see whole is held until it has, and goes out as it came', async () => {
  const schema = { type: 'object', required: ['city'] }
  const held = policy({ id: 'a', kind: 'json-schema', stages: ['pre_response'], config: { schema } })
  let parts = ['{"ci', 'ty": "Oslo"}']
  const gateway = await start([held], () => new Response(streamOf(...parts), eventStream))
  const good = await gateway.chat({ ...question, stream: true })
  expect(await good.text()).toBe(streamOf(...parts))
  parts = ['{"town', '": "Oslo"}']
  const bad = await gateway.chat({ ...question, stream: true })
  expect([bad.status, bad.headers.get('x-service-verdict')]).toEqual([400, 'BLOCK'])
  expect(await bad.text()).not.toContain('Oslo')
})

test('what is longer than can be held is decided by when_broken', async () => {
  const long = streamOf('x'.repeat(9000))
  for (const whenBroken of ['deny', 'allow'] as const) {
    const held = policy({
      id: 'a',
      kind: 'audit',
      stages: ['pre_response'],
      config: {},
      when: 'response.text == ""',
      whenBroken,
    })
    const gateway = await start([held], () => new Response(long, eventStream), { stream_hold_bytes: 4096 })
    const answer = await gateway.chat({ ...question, stream: true })
    expect(answer.status).toBe(whenBroken === 'deny' ? 403 : 200)
    if (whenBroken === 'allow') expect(await answer.text()).toBe(long)
    await gateway.stop()
    running = null
  }
})

test('a text policy that would take too long is broken, in a stream too, and when_broken decides', async () => {
  const long = streamOf('a'.repeat(60_000))
  for (const whenBroken of ['deny', 'allow'] as const) {
    for (const action of ['escalate', 'redact'] as const) {
      const config = { patterns: [{ name: 'wide', pattern: '[a-z]{1,500}@corp' }], action }
      const wide = policy({ id: 'a', kind: 'pattern-filter', stages: ['post_request'], config, whenBroken })
      const gateway = await start([wide], () => new Response(long, eventStream))
      const answer = await gateway.chat({ ...question, stream: true })
      const text = await answer.text()
      if (whenBroken === 'allow') expect(text).toBe(long)
      else expect(text).not.toContain('aaaa')
      await gateway.stop()
      running = null
    }
  }
})

test('tools that a policy refuses are neither offered nor called', async () => {
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: '1', type: 'function', function: { name: 'rm', arguments: '{}' } }],
  }
  const gateway = await start(
    [
      policy({ id: 'a', kind: 'tool-access', config: { deny: ['rm'], action: 'remove' } }),
      policy({ id: 'b', kind: 'tool-access', stages: ['post_request'], config: { deny: ['rm'] } }),
    ],
    () => Response.json({ ...completion, choices: [{ index: 0, message: called, finish_reason: 'tool_calls' }] }),
  )
  const tool = (name: string) => ({ type: 'function', function: { name } })
  const answer = await gateway.chat({ ...question, tools: [tool('rm'), tool('ls')], tool_choice: tool('rm') })
  expect(JSON.parse(gateway.seen[0]?.body ?? '')).toEqual({ ...question, tools: [tool('ls')] })
  expect([answer.status, await answer.json()]).toMatchObject([
    403,
    { verdictan: { reason_code: 'policy.tool_not_allowed' } },
  ])
})

/** Allowances on which every account has one. */
function oneEach(gateway: TestGateway) {
  const taken = new Set<string>()
  const reserve = (demands: readonly Demand[]): Reservation => {
    for (const { account } of demands) if (taken.has(account)) throw new UsageRefused(account, 'exhausted')
    const held = demands.map(({ account }) => ({ account, amount: 1 }))
    for (const { account } of held) taken.add(account)
    const release = () => {
      for (const { account } of held) taken.delete(account)
    }
    return { held, extend: () => true, settle: (used) => used, release }
  }
  Object.assign(gateway.lane, { allowances: { ...gateway.lane.allowances, reserve } })
}

test('a grant is used once, booked with the outcome, and given back where nothing was sent', async () => {
  const gateway = await start([
    policy({ id: 'a', kind: 'escalate', when: 'true', config: { reason_code: 'a.b' } }),
    policy({
      id: 'b',
      kind: 'condition',
      position: 2,
      when: 'request.headers["x-test"] == "deny"',
      config: { verdict: 'deny', reason_code: 'a.c' },
    }),
  ])
  oneEach(gateway)
  const [token] = gateway.lane.tokens.values()
  const body = JSON.stringify(question)
  const digest = gateway.lane.standing.promptHash(new TextEncoder().encode(body))
  gateway.lane.grants.push({ id: 'leave', tokenId: token?.id ?? '', digest, expiresAt: Date.now() + 60_000 })
  const ask = (say: string) => gateway.chat(body, { headers: { 'x-test': say } })
  expect((await ask('deny')).status).toBe(403)
  const sent = await ask('go')
  expect([sent.status, sent.headers.get('x-service-verdict')]).toEqual([200, 'ALLOW'])
  const again = await ask('go')
  expect([again.status, again.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
  const [booked] = [...gateway.lane.journal.closed.values()]
    .flat()
    .filter(({ settlements }) => settlements !== undefined)
  expect(booked?.settlements).toContainEqual({ account: 'grant/leave', amount: 1 })
})

const waiting = z.object({ verdictan: z.object({ escalation: z.object({ id: z.uuid() }) }) })

test('one request that escalates is one decision, approval_required, with what is to be queued', async () => {
  const gateway = await start([policy({ id: 'a', kind: 'escalate', when: 'true', config: { reason_code: 'a.b' } })])
  const answer = await gateway.chat(question)
  const { verdictan } = waiting.parse(await answer.json())
  const decisions = gateway.lane.journal.refused.filter(({ event_type }) => event_type === 'decision')
  expect(decisions).toMatchObject([
    { verdict: 'approval_required', details: { escalation: { id: verdictan.escalation.id, policy_id: 'a' } } },
  ])
})

test('nothing that leaves the gateway’s record holds the text that was found', async () => {
  const gateway = await start([
    policy({ id: 'a', kind: 'term-filter', config: { terms: ['swordfish'], action: 'block' }, mode: 'monitor' }),
    policy({ id: 'b', kind: 'term-filter', config: { terms: ['swordfish'], action: 'block' }, position: 2 }),
  ])
  const answer = await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content: 'swordfish' }] })
  expect(answer.status).toBe(400)
  expect((await answer.text()) + JSON.stringify(gateway.lane.journal.refused)).not.toContain('swordfish')
})

test('a fallback that a policy would refuse is not tried', async () => {
  const refusing = [
    policy({ id: 'a', kind: 'model-access', config: { deny_models: ['second'] } }),
    policy({
      id: 'b',
      kind: 'condition',
      when: 'model.id == "second"',
      config: { verdict: 'deny', reason_code: 'a.b' },
    }),
    policy({ id: 'c', kind: 'audit', config: {}, targets: { models: ['second'] } }),
  ]
  for (const policies of [[], ...refusing.map((one) => [one])]) {
    const gateway = await start(policies, () => {
      const { model } = JSON.parse(gateway.seen.at(-1)?.body ?? '{}')
      return model === 'second' ? Response.json(completion) : Response.json({ error: {} }, { status: 500 })
    })
    gateway.lane.catalog.push(testModel({ id: 'first', fallbacks: ['second'] }), testModel({ id: 'second' }))
    const answer = await gateway.chat({ ...question, model: 'first' })
    expect(answer.status).toBe(policies.length === 0 ? 200 : 500)
    expect(gateway.seen.some(({ body }) => body.includes('"second"'))).toBe(policies.length === 0)
    await gateway.stop()
    running = null
  }
})

test('what is only monitored changes and ends nothing, whole and streamed, and is on the record', async () => {
  const look = { config: { terms: ['swordfish'], action: 'redact' }, mode: 'monitor' } as const
  const policies = [
    policy({ id: 'a', kind: 'term-filter', ...look }),
    policy({ id: 'b', kind: 'term-filter', stages: ['pre_response'], ...look }),
  ]
  for (const stream of [false, true]) {
    const sent = streamOf('sword', 'fish')
    const whole = { ...completion, choices: [{ index: 0, message: { role: 'assistant', content: 'swordfish' } }] }
    const gateway = await start(policies, () => (stream ? new Response(sent, eventStream) : Response.json(whole)))
    const messages = [{ role: 'user', content: 'swordfish' }]
    const answer = await gateway.chat({ model: 'gpt-test', messages, stream })
    expect(answer.headers.get('x-service-verdict')).toBe('ALLOW')
    expect(await answer.text()).toBe(stream ? sent : JSON.stringify(whole))
    expect(JSON.parse(gateway.seen[0]?.body ?? '')).toMatchObject({ messages })
    const [outcome] = gateway.lane.journal.outcomes()
    expect(outcome?.verdict).toBe('allow')
    expect(outcome?.details?.policy_results).toMatchObject([
      { policy_id: 'a', mode: 'monitor', verdict: 'redact' },
      { policy_id: 'b', mode: 'monitor', verdict: 'redact' },
    ])
    await gateway.stop()
    running = null
  }
})
