/** What policies make of the requests and answers that pass the gateway. */
import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { type Demand, type Reservation, UsageRefused } from '../../usage/usage-limits.ts'
import { completion, question, type TestGateway } from '../testing/gateway.ts'
import { askResponses, eventStream, frame, policy, startPoliced, streamOf } from '../testing/policies.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

async function start(...given: Parameters<typeof startPoliced>): Promise<TestGateway> {
  running = await startPoliced(...given)
  return running
}

test('changes only the redacted member and forwards every other byte unchanged', async () => {
  const gateway = await start([policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact' } })])
  const body = `{ "model":"gpt-test",  "temperature" : 1.0, "messages": [{"role":"user","content":"Write to ann@example.com"}], "x": {"y": 1e2} }`
  const answer = await gateway.chat(body)
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'REDACT'])
  expect(gateway.seen[0]?.body).toBe(
    `{ "model":"gpt-test",  "temperature" : 1.0, "messages": [{"role":"user","content":"Write to [EMAIL]"}], "x": {"y": 1e2} }`,
  )
  const [outcome] = gateway.worker.journal.outcomes()
  expect(outcome).toMatchObject({ verdict: 'redact', reason_code: 'policy.pii' })
  expect(JSON.stringify([...gateway.worker.journal.closed.values()])).not.toContain('ann@example.com')
})

test('keeps exact numbers in members that policies rewrite, in requests and answers', async () => {
  const call = (id: string) => `{"type":"tool_use","id":"t","name":"f","input":{"id":${id},"to":"ann@example.com"}}`
  const answered = (id: string) =>
    `{"type":"message","role":"assistant","content":[${call(id)}],"stop_reason":"tool_use"}`
  const gateway = await start(
    [
      policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact' }, stages: ['pre_request'] }),
      policy({ id: 'b', kind: 'pii', config: { types: ['email'], action: 'redact' }, stages: ['pre_response'] }),
      policy({ id: 'c', kind: 'tool-access', position: 2, config: { allow: ['f'], action: 'remove' } }),
    ],
    () => new Response(answered('12345678901234567891'), { headers: { 'content-type': 'application/json' } }),
  )
  const tool = (name: string, most: string) => `{"name":"${name}","input_schema":{"maximum":${most}}}`
  const tools = [tool('g', '12345678901234567892'), tool('f', '12345678901234567893')]
  const turn = `{"role":"assistant","content":[${call('12345678901234567890')}]}`
  const [provider] = gateway.worker.upstreams
  if (provider !== undefined) gateway.worker.upstreams[0] = { ...provider, kind: 'anthropic' }
  const answer = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: `{"model":"gpt-test","max_tokens":9,"tools":[${tools}],"messages":[${turn}]}`,
  })
  expect(await answer.text()).toContain('"input":{"id":12345678901234567891,"to":"[EMAIL]"}')
  expect(gateway.seen[0]?.body).toBe(
    `{"model":"gpt-test","max_tokens":9,"tools":[${tools[1]}],"messages":[${turn.replace('ann@example.com', '[EMAIL]')}]}`,
  )
})

test('lets policies read the exact digits of tool arguments, in requests and answers', async () => {
  const call = (id: string) => `{"type":"tool_use","id":"t","name":"f","input":{"id":${id}}}`
  const rule = { kind: 'term-filter', config: { terms: ['12345678901234567891'], action: 'block' } }
  let said = '12345678901234567892'
  const gateway = await start(
    [policy({ id: 'a', ...rule, stages: ['pre_request'] }), policy({ id: 'b', ...rule, stages: ['pre_response'] })],
    () => {
      const headers = { 'content-type': 'application/json' }
      return new Response(`{"type":"message","role":"assistant","content":[${call(said)}]}`, { headers })
    },
  )
  const [provider] = gateway.worker.upstreams
  if (provider !== undefined) gateway.worker.upstreams[0] = { ...provider, kind: 'anthropic' }
  const ask = async (id: string) => {
    const turns = `{"role":"assistant","content":[${call(id)}]},{"role":"user","content":"x"}`
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: `{"model":"gpt-test","max_tokens":9,"temperature":0.69999998807907104,"messages":[${turns}]}`,
    })
    return { status: answer.status, text: await answer.text() }
  }
  const passed = await ask('12345678901234567893')
  expect(passed).toMatchObject({ status: 200, text: expect.stringContaining('{"id":12345678901234567892}') })
  expect(gateway.seen[0]?.body).toContain('"temperature":0.69999998807907104')
  expect(await ask('12345678901234567891')).toMatchObject({ text: expect.stringContaining('content_policy_violation') })
  expect(gateway.seen).toHaveLength(1)
  said = '12345678901234567891'
  const blocked = await ask('1')
  expect(blocked.text).toContain('content_policy_violation')
  expect(blocked.text).not.toContain(said)
})

test('gives the next policy the text after redact and rewrite', async () => {
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

test('follows when_broken for a policy that throws, and records an event either way', async () => {
  for (const whenBroken of ['deny', 'allow'] as const) {
    const gateway = await start([
      policy({ id: 'a', kind: 'audit', config: {}, when: 'request.headers["x-nowhere"] == "y"', whenBroken }),
    ])
    const answer = await gateway.chat(question)
    expect(answer.status).toBe(whenBroken === 'deny' ? 403 : 200)
    const events = [...gateway.worker.journal.refused, ...[...gateway.worker.journal.closed.values()].flat()]
    const decision = events.find(({ event_type }) => event_type === 'decision')
    expect(decision).toMatchObject({ reason_code: 'policy.broken', verdict: whenBroken })
    await gateway.stop()
    running = null
  }
})

test('treats a text policy over its work limit as broken, in streams too, and follows when_broken', async () => {
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

test('removes offered tools and blocks calls that a policy refuses', async () => {
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

test('matches a tool by name in every form of offer and call', async () => {
  const refuse = (stage: 'pre_request' | 'post_request') =>
    policy({ id: 'a', kind: 'tool-access', stages: [stage], config: { deny: ['rm'] } })
  const offers = [
    { tools: [{ type: 'custom', custom: { name: 'rm' } }] },
    { functions: [{ name: 'rm' }] },
    { tools: [{ type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'rm' }] }] },
  ]
  const offered = await start([refuse('pre_request')])
  for (const offer of offers) expect((await offered.chat({ ...question, ...offer })).status).toBe(403)
  expect((await offered.chat({ ...question, functions: [{ name: 'ls' }] })).status).toBe(200)
  await offered.stop()
  const calls = [
    { tool_calls: [{ index: 0, type: 'custom', custom: { name: 'rm', input: '' } }] },
    { function_call: { name: 'rm', arguments: '{}' } },
  ]
  let message: object = {}
  let stream = false
  const called = await start([refuse('post_request')], () =>
    stream
      ? new Response(frame({ choices: [{ index: 0, delta: message }] }) + frame('[DONE]'), eventStream)
      : Response.json({ ...completion, choices: [{ index: 0, message }] }),
  )
  for (message of calls) {
    for (stream of [false, true]) expect((await called.chat({ ...question, stream })).status).toBe(403)
  }
})

test('keeps only the allowed legacy functions', async () => {
  const removing = policy({ id: 'a', kind: 'tool-access', config: { deny: ['rm'], action: 'remove' } })
  const gateway = await start([removing])
  const functions = [{ name: 'rm' }, { name: 'ls' }]
  await gateway.chat({ ...question, functions, function_call: { name: 'rm' } })
  await gateway.chat({ ...question, functions, function_call: 'auto' })
  expect(gateway.seen.map(({ body }) => JSON.parse(body))).toEqual([
    { ...question, functions: [{ name: 'ls' }] },
    { ...question, functions: [{ name: 'ls' }], function_call: 'auto' },
  ])
})

test('refuses or removes a tool that an item of a responses input offers', async () => {
  const tool = (name: string) => ({ type: 'function', name })
  const item = (...names: string[]) => ({ type: 'additional_tools', role: 'developer', tools: names.map(tool) })
  const turn = { type: 'message', role: 'user', content: 'hi' }
  const asking = JSON.stringify({ model: 'gpt-test', input: [item('rm', 'ls'), turn] })
  const refusing = await start([policy({ id: 'a', kind: 'tool-access', config: { deny: ['rm'] } })])
  expect((await askResponses(refusing, asking)).status).toBe(403)
  await refusing.stop()
  const gateway = await start([policy({ id: 'a', kind: 'tool-access', config: { deny: ['rm'], action: 'remove' } })])
  await askResponses(gateway, asking)
  expect(JSON.parse(gateway.seen[0]?.body ?? '')).toEqual({ model: 'gpt-test', input: [item('ls'), turn] })
})

/** UsageLimits on which every account has one. */
function oneEach(gateway: TestGateway) {
  const taken = new Set<string>()
  const reserve = (demands: readonly Demand[]): Reservation => {
    for (const { account } of demands) if (taken.has(account)) throw new UsageRefused(account, 'exhausted')
    const held = demands.map(({ account }) => ({ account, amount: 1 }))
    for (const { account } of held) taken.add(account)
    const release = () => {
      for (const { account } of held) taken.delete(account)
    }
    return { held, extend: () => true, book: (used) => used, release }
  }
  Object.assign(gateway.worker, { usageLimits: { ...gateway.worker.usageLimits, reserve } })
}

test('uses a grant once, records it with the outcome, and restores it when nothing was sent', async () => {
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
  const [token] = gateway.worker.tokens.values()
  const body = JSON.stringify(question)
  const digest = `chat/${gateway.worker.status.promptHash(new TextEncoder().encode(body))}`
  gateway.worker.grants.push({ id: 'leave', tokenId: token?.id ?? '', digest, expiresAt: Date.now() + 60_000 })
  const ask = (say: string) => gateway.chat(body, { headers: { 'x-test': say } })
  expect((await ask('deny')).status).toBe(403)
  const sent = await ask('go')
  expect([sent.status, sent.headers.get('x-service-verdict')]).toEqual([200, 'ALLOW'])
  const again = await ask('go')
  expect([again.status, again.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
  const [booked] = [...gateway.worker.journal.closed.values()]
    .flat()
    .filter(({ settlements }) => settlements !== undefined)
  expect(booked?.settlements).toContainEqual({ account: 'grant/leave', amount: 1 })
})

test('does not accept a grant for the same bytes in a request with another meaning', async () => {
  const gateway = await start([policy({ id: 'a', kind: 'escalate', when: 'true', config: { reason_code: 'a.b' } })])
  oneEach(gateway)
  const [token] = gateway.worker.tokens.values()
  const body = JSON.stringify({ ...question, input: 'something else' })
  const digest = `chat/${gateway.worker.status.promptHash(new TextEncoder().encode(body))}`
  gateway.worker.grants.push({ id: 'leave', tokenId: token?.id ?? '', digest, expiresAt: Date.now() + 60_000 })
  const elsewhere = await askResponses(gateway, body)
  expect(elsewhere.headers.get('x-service-verdict')).toBe('ESCALATE')
  expect((await gateway.chat(body)).headers.get('x-service-verdict')).toBe('ALLOW')
})

const waiting = z.object({ verdictan: z.object({ escalation: z.object({ id: z.uuid() }) }) })

test('records one approval_required decision with the escalation for an escalated request', async () => {
  const gateway = await start([policy({ id: 'a', kind: 'escalate', when: 'true', config: { reason_code: 'a.b' } })])
  const answer = await gateway.chat(question)
  const { verdictan } = waiting.parse(await answer.json())
  const decisions = gateway.worker.journal.refused.filter(({ event_type }) => event_type === 'decision')
  expect(decisions).toMatchObject([
    { verdict: 'approval_required', details: { escalation: { id: verdictan.escalation.id, policy_id: 'a' } } },
  ])
})

test('writes no found text into an event', async () => {
  const gateway = await start([
    policy({ id: 'a', kind: 'term-filter', config: { terms: ['swordfish'], action: 'block' }, mode: 'monitor' }),
    policy({ id: 'b', kind: 'term-filter', config: { terms: ['swordfish'], action: 'block' }, position: 2 }),
  ])
  const answer = await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content: 'swordfish' }] })
  expect(answer.status).toBe(400)
  expect((await answer.text()) + JSON.stringify(gateway.worker.journal.refused)).not.toContain('swordfish')
})

test('hashes a blocked request the same way as an allowed one', async () => {
  const terms = policy({ id: 'a', kind: 'term-filter', config: { terms: ['swordfish'], action: 'block' } })
  const gateway = await start([terms])
  const body = JSON.stringify({ model: 'gpt-test', messages: [{ role: 'user', content: 'swordfish' }] })
  expect((await gateway.chat(body)).status).toBe(400)
  const digest = gateway.worker.status.promptHash(new TextEncoder().encode(body))
  expect(gateway.worker.journal.outcomes()).toMatchObject([{ verdict: 'block', prompt_hash: digest }])
})

test('reports the reason of the policy that was applied as the outcome’s reason', async () => {
  const watching = { mode: 'monitor', config: { terms: ['ann'], action: 'redact' } } as const
  const pii = policy({ id: 'b', kind: 'pii', config: { types: ['email'], action: 'redact' }, position: 2 })
  const gateway = await start([policy({ id: 'a', kind: 'term-filter', ...watching }), pii])
  await gateway.chat({ ...question, messages: [{ role: 'user', content: 'ann@example.com' }] })
  expect(gateway.worker.journal.outcomes()).toMatchObject([{ verdict: 'redact', reason_code: 'policy.pii' }])
})

test('skips a fallback that a policy would refuse', async () => {
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
    gateway.worker.catalog.push(testModel({ id: 'first', fallbacks: ['second'] }), testModel({ id: 'second' }))
    const answer = await gateway.chat({ ...question, model: 'first' })
    expect(answer.status).toBe(policies.length === 0 ? 200 : 500)
    expect(gateway.seen.some(({ body }) => body.includes('"second"'))).toBe(policies.length === 0)
    await gateway.stop()
    running = null
  }
})

test('refuses tokenized input when a policy reads text and passes it when none does', async () => {
  const terms = { kind: 'term-filter', config: { terms: ['x'], action: 'block' } }
  const vectors = () => Response.json({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1] }] })
  const ask = async (path: string, body: object): Promise<[number, unknown]> => {
    const { url = '', secret = '' } = running ?? {}
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'gpt-test', ...body }),
    })
    return [answer.status, answer.status === 200 ? null : ((await answer.json()) as { error: object }).error]
  }
  await start([policy({ id: 'a', whenBroken: 'allow', ...terms })], vectors)
  for (const input of [
    [1, 2],
    [[1, 2], [3]],
    ['word', [4]],
  ]) {
    expect(await ask('embeddings', { input })).toEqual([422, expect.objectContaining({ param: 'input' })])
  }
  expect(await ask('completions', { prompt: [5, 6] })).toEqual([422, expect.objectContaining({ param: 'prompt' })])
  expect(await ask('embeddings', { input: ['word'], other: 'a x' })).toEqual([400, expect.anything()])
  expect((await ask('embeddings', { input: ['word'] }))[0]).toBe(200)
  await running?.stop()
  const unreading = [
    policy({ id: 'a', mode: 'monitor', ...terms }),
    policy({ id: 'b', when: 'request.family == "chat"', ...terms }),
    policy({ id: 'c', kind: 'model-access', config: { allow_models: ['*'] } }),
  ]
  await start(unreading, vectors)
  expect((await ask('embeddings', { input: [1, 2] }))[0]).toBe(200)
})
