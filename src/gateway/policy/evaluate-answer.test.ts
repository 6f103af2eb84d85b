/**
 * What policies make of answers, whole and streamed. Longer than most, because the two are asked the same side by side.
 */
import { afterEach, expect, test } from 'bun:test'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { completion, question, type TestGateway } from '../testing/gateway.ts'
import { askResponses, eventStream, frame, policy, startPoliced, streamedText, streamOf } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

async function start(...given: Parameters<typeof startPoliced>): Promise<TestGateway> {
  running = await startPoliced(...given)
  return running
}

test('restores redacted text in whole and streamed answers when the policy asks for it', async () => {
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
  expect(streamedText(await streamed.text())).toBe('Sent to ann@example.com now, not [EMAIL_2]')
})

test('does not treat text of the caller that looks like a placeholder as one', async () => {
  const gateway = await start(
    [policy({ id: 'a', kind: 'pii', config: { types: ['email'], action: 'redact', restore: true } })],
    () =>
      Response.json({
        ...completion,
        choices: [{ index: 0, message: { role: 'assistant', content: 'To [EMAIL_1], [EMAIL_2], [EMAIL_3]' } }],
      }),
  )
  const tools = [{ type: 'function', function: { name: 'f', description: 'Fills in [EMAIL_2]' } }]
  const messages = [{ role: 'user', content: 'Write [EMAIL_1] for ann@example.com' }]
  const answer = await gateway.chat({ model: 'gpt-test', messages, tools })
  expect(gateway.seen[0]?.body).toContain('Write [EMAIL_1] for [EMAIL_3]')
  expect(await answer.json()).toMatchObject({
    choices: [{ message: { content: 'To [EMAIL_1], [EMAIL_2], ann@example.com' } }],
  })
})

test('sends no part of a blocked term in a stream, wherever the provider splits it', async () => {
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
    expect(streamedText(body)).toBe('The word is ')
    expect(body).toEndWith('data: [DONE]\n\n')
    expect(body).toContain('"content_policy_violation"')
    expect(gateway.worker.journal.outcomes()).toMatchObject([{ verdict: 'block', reason_code: 'policy.term_filter' }])
    await gateway.stop()
    running = null
  }
})

test('holds a stream until a policy has seen the whole answer, then sends it unchanged', async () => {
  const schema = { type: 'object', required: ['city'] }
  const held = policy({ id: 'a', kind: 'json-schema', stages: ['pre_response'], config: { schema } })
  let parts = ['{"ci', 'ty": "Oslo"}']
  // Some providers leave the last blank line out.
  let missing = 0
  const gateway = await start([held], () => {
    return new Response(streamOf(...parts).slice(0, -missing || undefined), eventStream)
  })
  for (const lacking of [0, 1, 2]) {
    missing = lacking
    const good = await gateway.chat({ ...question, stream: true })
    expect(await good.text()).toBe(streamOf(...parts).slice(0, -lacking || undefined))
  }
  parts = ['{"town', '": "Oslo"}']
  const bad = await gateway.chat({ ...question, stream: true })
  expect([bad.status, bad.headers.get('x-service-verdict')]).toEqual([400, 'BLOCK'])
  expect(await bad.text()).not.toContain('Oslo')
})

test('applies when_broken to an answer too long to hold', async () => {
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

/** A stream of which the provider sends the rest only when told to. */
function halfStream(first: string, rest: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(Buffer.from(first))
      await promise
      controller.enqueue(Buffer.from(rest))
      controller.close()
    },
  })
  return { response: () => new Response(body, eventStream), resolve }
}

test('does not hold a stream for policies that cannot stop it or do not apply', async () => {
  const stages: StoredPolicy['stages'] = ['post_request']
  const verdict = { verdict: 'deny', reason_code: 'a.b' }
  const idle = [
    policy({ id: 'a', kind: 'audit', stages, config: {} }),
    policy({ id: 'b', kind: 'condition', stages, config: verdict, when: 'request.model == "other"' }),
    policy({ id: 'c', kind: 'condition', stages, config: verdict, when: '"x-other" in request.headers' }),
    policy({ id: 'd', kind: 'condition', stages, config: verdict, when: 'response.text != ""', mode: 'monitor' }),
  ]
  const sent = streamOf('one', 'two')
  const cut = sent.indexOf('\n\n') + 2
  const { response, resolve } = halfStream(sent.slice(0, cut), sent.slice(cut))
  const gateway = await start(idle, response)
  const answer = await gateway.chat({ ...question, stream: true })
  const reader = (answer.body ?? new Blob([]).stream()).getReader()
  const first = await reader.read()
  expect(Buffer.from(first.value ?? []).toString()).toBe(sent.slice(0, cut))
  resolve()
  while (!(await reader.read()).done);
  expect(gateway.worker.journal.outcomes()[0]?.details?.policy_results).toMatchObject([
    { policy_id: 'a', verdict: 'allow', reason_code: 'policy.audit' },
    { policy_id: 'd', verdict: 'deny', mode: 'monitor' },
  ])
})

test('breaks a text policy whose condition fails, in streamed and whole answers', async () => {
  for (const stream of [false, true]) {
    for (const whenBroken of ['deny', 'allow'] as const) {
      const look = policy({
        id: 'a',
        kind: 'term-filter',
        stages: ['pre_response'],
        config: { terms: ['Hello'], action: 'redact' },
        when: 'request.headers["x-nowhere"] == "y"',
        whenBroken,
      })
      const gateway = await start([look], () =>
        stream ? new Response(streamOf('Hello'), eventStream) : Response.json(completion),
      )
      const answer = await gateway.chat({ ...question, stream })
      expect(answer.status).toBe(whenBroken === 'deny' ? 403 : 200)
      if (whenBroken === 'allow') expect(await answer.text()).toContain('Hello')
      await gateway.stop()
      running = null
    }
  }
})

test('gives a whole-answer policy texts that a stream sends in one piece', async () => {
  const secret = 'call ann@example.com'
  const sent =
    frame({ type: 'response.created', sequence_number: 0, response: { id: 'r', output: [] } }) +
    frame({
      type: 'response.completed',
      sequence_number: 1,
      response: {
        id: 'r',
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: secret }] }],
      },
    })
  const redacting = policy({
    id: 'a',
    kind: 'pii',
    stages: ['post_request'],
    config: { types: ['email'], action: 'redact' },
  })
  for (const [found, status] of [
    ['call [EMAIL]', 400],
    ['call ann', 200],
  ] as const) {
    const seeing = policy({
      id: 'b',
      kind: 'condition',
      stages: ['pre_response'],
      config: { verdict: 'block', reason_code: 'a.b' },
      when: `response.text.contains("${found}")`,
    })
    const gateway = await start([redacting, seeing], () => new Response(sent, eventStream))
    const answer = await askResponses(
      gateway,
      JSON.stringify({ model: 'gpt-test', input: 'Good morning', stream: true }),
    )
    expect(answer.status).toBe(status)
    await gateway.stop()
    running = null
  }
})

test('checks a streamed call without arguments against a schema, and late arguments alone', async () => {
  const schema = policy({
    id: 'a',
    kind: 'json-schema',
    stages: ['post_request'],
    config: { schema: { type: 'object', required: ['city'] }, applies_to: 'tool_arguments' },
  })
  const call = (index: number, more: object) => ({ index, id: `c${index}`, function: { name: 'f', ...more } })
  const chunk = (...calls: object[]) => frame({ choices: [{ index: 0, delta: { tool_calls: calls } }] })
  const late = { index: 0, function: { arguments: '{"city":"B"}' } }
  const end = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }) + frame('[DONE]')
  for (const [sent, status] of [
    [chunk(call(0, { arguments: '' })), 400],
    [chunk(call(0, {})), 400],
    [chunk(call(0, { arguments: '' })) + chunk(late), 200],
    [chunk(call(0, { arguments: '' }), call(1, { arguments: '{"city":"B"}' })), 400],
    [chunk(call(0, { arguments: '{"city":"B"}' }), call(1, { arguments: '{"city":"B"}' })), 200],
  ] as const) {
    const gateway = await start([schema], () => new Response(sent + end, eventStream))
    const answer = await gateway.chat({ ...question, stream: true })
    expect([sent, answer.status]).toEqual([sent, status])
    await answer.text()
    await gateway.stop()
    running = null
  }
})

test('does not check provider data outside the answer against a schema', async () => {
  const schema = policy({
    id: 'a',
    kind: 'json-schema',
    stages: ['post_request'],
    config: { schema: { type: 'array' } },
  })
  const told = {
    ...completion,
    provider: 'Somebody',
    choices: [{ index: 0, message: { role: 'assistant', content: '[]' } }],
  }
  const chunk = { provider: 'Somebody', choices: [{ index: 0, delta: { content: '[]' } }] }
  let stream = false
  const gateway = await start([schema], () =>
    stream ? new Response(frame(chunk) + frame('[DONE]'), eventStream) : Response.json(told),
  )
  for (stream of [false, true]) expect((await gateway.chat({ ...question, stream })).status).toBe(200)
})

test('does not check keep-alive data against a schema, but evaluates conditions on it', async () => {
  const schema = policy({
    id: 'a',
    kind: 'json-schema',
    stages: ['post_request'],
    config: { schema: { type: 'array' } },
  })
  const denies = policy({
    id: 'a',
    kind: 'condition',
    stages: ['post_request'],
    when: 'response.text.contains("keepalive")',
    config: { verdict: 'deny', reason_code: 'c.c' },
  })
  const sent = `data: ping\n\ndata:\n\nevent: ping\ndata: keepalive\n\n${streamOf('[', ']')}`
  for (const [looking, status] of [
    [schema, 200],
    [denies, 403],
  ] as const) {
    const gateway = await start([looking], () => new Response(sent, eventStream))
    const answer = await gateway.chat({ ...question, stream: true })
    expect(answer.status).toBe(status)
    if (status === 200) expect(await answer.text()).toBe(sent)
    await gateway.stop()
    running = null
  }
})

test('records but does not change or stop what a monitor-only policy finds, whole and streamed', async () => {
  const look = { config: { terms: ['swordfish'], action: 'redact' }, mode: 'monitor' } as const
  const policies = [
    policy({ id: 'a', kind: 'term-filter', ...look }),
    policy({ id: 'b', kind: 'term-filter', stages: ['pre_response'], ...look }),
    policy({ id: 'c', kind: 'tool-access', stages: ['pre_response'], config: { deny: ['rm'] }, mode: 'monitor' }),
  ]
  for (const stream of [false, true]) {
    const logprobs = { content: [{ token: 'sword', logprob: -1 }] }
    const call = [{ index: 0, id: '1', type: 'function', function: { name: 'rm', arguments: '{}' } }]
    const extra = { choices: [{ index: 0, delta: { tool_calls: call }, logprobs }] }
    const sent = frame(extra) + streamOf('sword', 'fish')
    const whole = { ...completion, choices: [{ index: 0, message: { role: 'assistant', content: 'swordfish' } }] }
    const gateway = await start(policies, () => (stream ? new Response(sent, eventStream) : Response.json(whole)))
    const messages = [{ role: 'user', content: 'swordfish' }]
    const answer = await gateway.chat({ model: 'gpt-test', messages, stream })
    expect(answer.headers.get('x-service-verdict')).toBe('ALLOW')
    expect(await answer.text()).toBe(stream ? sent : JSON.stringify(whole))
    expect(JSON.parse(gateway.seen[0]?.body ?? '')).toMatchObject({ messages })
    const [outcome] = gateway.worker.journal.outcomes()
    expect(outcome?.verdict).toBe('allow')
    expect(outcome?.details?.policy_results).toMatchObject([
      { policy_id: 'a', mode: 'monitor', verdict: 'redact' },
      { policy_id: 'b', mode: 'monitor', verdict: 'redact' },
      { policy_id: 'c', mode: 'monitor', verdict: stream ? 'deny' : 'allow' },
    ])
    await gateway.stop()
    running = null
  }
})

test('inspects a provider error that repeats the request like an answer, in any form', async () => {
  const look = (action: string) =>
    policy({ id: 'a', kind: 'pii', stages: ['pre_response'], config: { types: ['email'], action } })
  const schema = policy({
    id: 'b',
    kind: 'json-schema',
    stages: ['post_request'],
    config: { schema: { type: 'null' } },
  })
  const message = 'Bad value ann@example.com'
  const bodies = [
    [
      JSON.stringify({ error: { message, type: 'x' } }),
      JSON.stringify({ error: { message: 'Bad value [EMAIL]', type: 'x' } }),
    ],
    [JSON.stringify([{ error: message }]), '[{"error":"Bad value [EMAIL]"}]'],
    ['Bad value "ann@example.com"', 'Bad value "[EMAIL]"'],
    ['{ "error" : "none" }', '{ "error" : "none" }'],
  ] as const
  for (const [said, passed] of bodies) {
    for (const stream of [false, true]) {
      const gateway = await start([look('redact'), schema], () => new Response(said, { status: 400 }))
      const answer = await gateway.chat({ ...question, stream })
      expect([answer.status, await answer.text()]).toEqual([400, passed])
      expect(gateway.worker.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
      expect(gateway.worker.journal.attempts()).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
      await gateway.stop()
      running = null
    }
  }
  const blocking = await start([look('block')], () => Response.json({ error: { message } }, { status: 422 }))
  const blocked = await blocking.chat(question)
  expect([blocked.status, await blocked.json()]).toMatchObject([400, { error: { code: 'content_policy_violation' } }])
  expect(blocking.worker.journal.outcomes()).toMatchObject([{ verdict: 'block' }])
})

test('inspects the text of a provider error within a stream', async () => {
  const error = (message: string) => frame({ error: { message, type: 'server_error' } })
  for (const action of ['redact', 'block']) {
    const look = policy({ id: 'a', kind: 'pii', stages: ['pre_response'], config: { types: ['email'], action } })
    const sent = frame({ id: 'c', choices: [{ index: 0, delta: { content: 'Hello' } }] }) + error('for ann@example.com')
    const gateway = await start([look], () => new Response(sent, eventStream))
    const body = await (await gateway.chat({ ...question, stream: true })).text()
    expect(body).not.toContain('ann@')
    expect(body).toContain(action === 'redact' ? 'for [EMAIL]' : '"content_policy_violation"')
    await gateway.stop()
    running = null
  }
})
