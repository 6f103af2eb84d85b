/**
 * post_request policies on what a provider of another language sent, pre_response ones on what the caller is sent.
 * Longer than most, because all of it is asked of the same three providers.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { messageFrames } from '../../../test/fakes/messages.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import type { NeutralEvent } from '../../languages/neutral.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import { eventsOf, written } from '../../languages/testing/clients.ts'
import { recordings } from '../../languages/testing/streams.ts'
import { collected } from '../../languages/translation/collect-stream.ts'
import { newId } from '../../lib/ids.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { callerLanguageOf, providerLanguageOf } from '../request/translate.ts'
import type { TestGateway } from '../testing/gateway.ts'
import { eventStream, policy } from '../testing/policies.ts'
import { sse, startTranslating, type TranslatingGateway } from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway
let answers: TranslatingGateway['answers']

beforeEach(async () => {
  ;({ running, answers } = await startTranslating({ webhook_addresses: 'any' }))
  running.worker.catalog.push(
    testModel({ id: 'responder', providerId: 'openai', upstreamModel: 'up-responder', families: ['responses'] }),
    testModel({ id: 'chatter', providerId: 'openai', upstreamModel: 'up-chatter', families: ['chat'] }),
  )
})
afterEach(() => running.stop())

const spoken = ['chat', 'responses', 'messages'] as const
type Spoken = (typeof spoken)[number]
const routes = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' } as const
/** The model whose provider is asked in a language. */
const models = { chat: 'chatter', responses: 'responder', messages: 'anthropic' } as const
const pairs = spoken.flatMap((caller) =>
  spoken.flatMap((provider) => (caller === provider ? [] : [{ caller, provider }])),
)

const outputStages = ['post_request', 'pre_response'] as const

function ask(
  caller: Spoken,
  model: string,
  stream: boolean,
  { signal, content = 'Hello' }: { signal?: AbortSignal; content?: string } = {},
): Promise<Response> {
  const messages = [{ role: 'user', content }]
  return fetch(running.url + routes[caller], {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      stream,
      ...(caller === 'responses' ? { input: content } : { messages, max_tokens: 50 }),
    }),
    ...(signal && { signal }),
  })
}

const govern = (...policies: StoredPolicy[]) => {
  running.worker.policies = compilePolicySet(policies.map((each, index) => ({ ...each, position: index + 1 })))
}
const term = (stage: (typeof outputStages)[number], action: string, found = 'zebra', id: string = stage) =>
  policy({ id, kind: 'term-filter', stages: [stage], config: { terms: [found], action } })
const deny = (stage: (typeof outputStages)[number], when: string) =>
  policy({ id: stage, kind: 'condition', stages: [stage], when, config: { verdict: 'deny', reason_code: 'c.c' } })

const results = () => {
  const given = running.worker.journal.outcomes().at(-1)?.details?.policy_results
  return (Array.isArray(given) ? given : []).map(({ stage, verdict }) => [stage, verdict])
}

const rewrite = policy({
  id: 'rewrite',
  kind: 'response-rewrite',
  stages: ['post_request'],
  config: { replacements: [{ find: 'zebra', replace: 'lion' }] },
})

/** What a language's provider streams, and the same whole. */
function answerIn(language: Spoken, events: readonly NeutralEvent[]) {
  const asked = { model: 'm', exchangeId: newId(), includeUsage: true }
  const caller = callerLanguageOf(language)
  return { stream: written(caller, events), whole: caller.writeAnswer(collected(events), asked) }
}

function answering(provider: Spoken, events: readonly NeutralEvent[]): void {
  const { stream, whole } = answerIn(provider, events)
  answers[routes[provider]] = () =>
    parseObject(running.seen.at(-1)?.body ?? '')?.stream === true ? sse(stream)() : Response.json(whole)
}

/** What a caller's answer says, in the neutral form. */
const read = (caller: Spoken, stream: boolean, body: string) =>
  stream
    ? collected(eventsOf(providerLanguageOf(caller), Buffer.from(body)))
    : providerLanguageOf(caller).readAnswer(JSON.parse(body))

const speaking = (...texts: string[]): NeutralEvent[] => [
  { type: 'start', id: 'a1', model: 'm' },
  { type: 'part', part: 0, kind: 'text' },
  ...texts.map((text) => ({ type: 'text', part: 0, text }) as const),
  { type: 'part_end', part: 0 },
  { type: 'usage', usage: { ...noUsage, inputTokens: 5, outputTokens: 9 } },
  { type: 'finish', finish: 'stop', stopSequence: null },
  { type: 'end' },
]
const noUsage = { cachedInputTokens: null, cacheWriteTokens: null, reasoningTokens: null }

const calling = (...pieces: string[]): NeutralEvent[] => [
  { type: 'start', id: 'a1', model: 'm' },
  { type: 'part', part: 0, kind: 'tool_call', id: 'call_1', name: 'look' },
  ...pieces.map((text) => ({ type: 'text', part: 0, text }) as const),
  { type: 'part_end', part: 0 },
  { type: 'usage', usage: { ...noUsage, inputTokens: 5, outputTokens: 9 } },
  { type: 'finish', finish: 'tool_calls', stopSequence: null },
  { type: 'end' },
]

test.each([true, false])(
  'knows a called tool by the caller’s name where a function stands for it (stream: %p)',
  async (stream) => {
    const call = { type: 'tool_use', id: 't', name: 'files__rm', input: {} }
    const message = { id: 'm', type: 'message', role: 'assistant', content: [call], stop_reason: 'tool_use', usage: {} }
    const frames = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: call },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]
    answers['/v1/messages'] = stream ? sse(messageFrames(frames)) : () => Response.json(message)
    const files = { type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'rm', parameters: {} }] }
    const asked = async (config: object) => {
      govern(policy({ id: 'a', kind: 'tool-access', stages: ['post_request'], config }))
      const answer = await fetch(`${running.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'anthropic', stream, input: 'hi', max_output_tokens: 9, tools: [files] }),
      })
      await answer.text()
      return answer.status
    }
    expect(await asked({ deny: ['rm'] })).toBe(403)
    expect(await asked({ allow: ['rm'] })).toBe(200)
  },
)

test('sends no part of a call that comes whole where a policy stops the stream in its input', async () => {
  const call = { type: 'tool_use', id: 't', name: 'send', input: { to: 'team', text: 'ask ann@example.com' } }
  const start = { id: 'm', type: 'message', role: 'assistant', content: [], stop_reason: null, usage: {} }
  const textDelta = { type: 'text_delta', text: 'I write it. '.repeat(40) }
  answers['/v1/messages'] = sse(
    messageFrames([
      { type: 'message_start', message: start },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: textDelta },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: call },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]),
  )
  govern(policy({ id: 'a', kind: 'pii', stages: ['post_request'], config: { types: ['email'], action: 'block' } }))
  const answer = await fetch(`${running.url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'anthropic', stream: true, max_tokens: 9 },
      messages: [{ role: 'user', content: 'hi' }],
    }),
  })
  const body = await answer.text()
  expect(body).toContain('I write it.')
  expect(body).toContain('content_policy_violation')
  expect(body).not.toContain('"send"')
})

describe('a part of the answer that translation drops', () => {
  const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'a zebra' } }
  const text = { type: 'text', text: 'Found' }
  const usage = { input_tokens: 5, output_tokens: 9 }
  const whole = { id: 'm', type: 'message', role: 'assistant', content: [search, text], stop_reason: 'end_turn', usage }
  const frames = [
    { type: 'message_start', message: { ...whole, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: search },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Found' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]

  test.each([true, false])('is inspected at post_request and not at pre_response (stream: %p)', async (stream) => {
    answers['/v1/messages'] = stream ? sse(messageFrames(frames)) : () => Response.json(whole)
    const called = 'response.tool_calls.exists(t, t == "web_search")'
    for (const [given, expected] of [
      [policy({ id: 'a', kind: 'tool-access', stages: ['post_request'], config: { deny: ['web_search'] } }), 403],
      [policy({ id: 'a', kind: 'tool-access', stages: ['pre_response'], config: { deny: ['web_search'] } }), 200],
      [deny('post_request', called), 403],
      [deny('pre_response', called), 200],
      [term('post_request', 'block'), 400],
      [term('pre_response', 'block'), 200],
      [deny('post_request', 'response.text.contains("zebra")'), 403],
      [deny('pre_response', 'response.text.contains("zebra")'), 200],
    ] as const) {
      govern(given)
      for (const caller of ['chat', 'responses'] as const) {
        const answer = await ask(caller, 'anthropic', stream)
        const body = await answer.text()
        // The frame that opens the message has gone where the answer is not held.
        const isHeld = !stream || given.kind !== 'term-filter'
        if (isHeld) expect(answer.status).toBe(expected)
        if (expected === 200) expect(body).toContain('Found')
        else expect(body).toContain('"verdictan"')
        if (expected !== 200) expect(results()[0]?.[0]).toBe(given.stages[0])
      }
    }
  })
})

test.each([true, false])(
  'inspects a request echo of the provider when the caller’s language drops it (stream: %p)',
  async (stream) => {
    govern(term('post_request', 'block'))
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Found' }] }]
    const whole = { id: 'r', object: 'response', status: 'completed', output, instructions: 'No zebra' }
    const last = { type: 'response.completed', sequence_number: 0, response: whole }
    answers['/v1/responses'] = () =>
      stream ? sse(`event: ${last.type}\ndata: ${JSON.stringify(last)}\n\n`)() : Response.json(whole)
    for (const [content, expected] of [
      ['No zebra', 200],
      ['No lion', 400],
    ] as const) {
      const answer = await ask('chat', 'responder', stream, { content })
      expect(answer.status).toBe(expected)
      await answer.text()
    }
  },
)

describe.each(pairs)('a $caller client of a $provider provider', ({ caller, provider }) => {
  test('has its tool calls checked against a schema by their arguments alone', async () => {
    const config = { applies_to: 'tool_arguments', action: 'block', schema: { type: 'object', required: ['at'] } }
    for (const stage of outputStages) {
      govern(policy({ id: 'schema', kind: 'json-schema', stages: [stage], config }))
      for (const [pieces, expected] of [
        [['{"at":"', 'home"}'], 200],
        [['{"to":"', 'home"}'], 400],
        [['{}'], 400],
      ] as const) {
        answering(provider, calling(...pieces))
        for (const stream of [true, false]) expect((await ask(caller, models[provider], stream)).status).toBe(expected)
      }
    }
  })

  test('receives text, thoughts and arguments as post_request policies left them', async () => {
    govern(rewrite)
    const piece = fc.constantFrom('zebra', 'ze', 'bra', 'z', 'a zeb', 'ra ', ' and ', '東')
    const pieces = fc.array(piece, { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(pieces, pieces, pieces, fc.boolean(), async (thoughts, said, asked, stream) => {
        const events: NeutralEvent[] = [
          { type: 'start', id: 'a1', model: 'm' },
          { type: 'part', part: 0, kind: 'thought', language: provider },
          ...thoughts.map((text) => ({ type: 'text', part: 0, text }) as const),
          { type: 'part_end', part: 0 },
          { type: 'part', part: 1, kind: 'text' },
          ...said.map((text) => ({ type: 'text', part: 1, text }) as const),
          { type: 'part_end', part: 1 },
          { type: 'part', part: 2, kind: 'tool_call', id: 'call_1', name: 'look' },
          ...['{"at":"', ...asked, '"}'].map((text) => ({ type: 'text', part: 2, text }) as const),
          { type: 'part_end', part: 2 },
          { type: 'usage', usage: { ...noUsage, inputTokens: 5, outputTokens: 9 } },
          { type: 'finish', finish: 'tool_calls', stopSequence: null },
          { type: 'end' },
        ]
        answering(provider, events)
        const answer = await ask(caller, models[provider], stream)
        expect(answer.status).toBe(200)
        const { parts } = read(caller, stream, await answer.text())
        const texts = parts.map((part) =>
          part.kind === 'tool_call' ? part.arguments : 'text' in part ? part.text : '',
        )
        const rewritten = [thoughts.join(''), said.join(''), JSON.stringify({ at: asked.join('') })]
        expect(texts).toEqual(rewritten.map((each) => each.replaceAll('zebra', 'lion')))
        const changed = rewritten.some((each) => each.includes('zebra'))
        expect(running.worker.journal.outcomes().at(-1)).toMatchObject({
          verdict: changed ? 'rewrite' : 'allow',
          event_cost_attribution: { input_tokens: 5, output_tokens: 9, estimated: false },
        })
      }),
      { numRuns: 15 },
    )
  })

  test('receives a post_request block or escalation like one of pre_response, before and after the answer began', async () => {
    for (const action of ['block', 'escalate']) {
      for (const stream of [false, true]) {
        for (const texts of [['a zebra'], ['Once upon a time there was ', 'a ', 'zebra', ' more']]) {
          answering(provider, speaking(...texts))
          const seen: unknown[] = []
          for (const stage of outputStages) {
            govern(term(stage, action))
            const answer = await ask(caller, models[provider], stream)
            const body = await answer.text()
            expect(body).not.toContain('zebra')
            const {
              verdict,
              reason_code,
              event_cost_attribution: cost,
            } = running.worker.journal.outcomes().at(-1) ?? {}
            const [attempt] = running.worker.journal.attempts().slice(-1)
            expect(results()).toEqual([[stage, action]])
            seen.push([
              answer.status,
              endOf(body),
              verdict,
              reason_code,
              stream || cost?.output_tokens,
              attempt?.reason_code,
            ])
          }
          expect(seen[0]).toEqual(seen[1])
        }
      }
    }
  })
})

/** The last event of a stream with its text before it, or a whole body, without what is another in each answer. */
function endOf(body: string): unknown {
  const data = [...body.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => json)
  const events = data.length === 0 ? [body] : data.filter((json) => json.includes('verdictan') || json === '[DONE]')
  const varied =
    /"(?:id|request_id|item_id)":"[^"]*"|"(?:created|created_at|sequence_number)":\d+|(?<=escalation claim )[\w-]+/g
  return [body.includes('Once upon a time there was'), ...events.map((json) => json.replaceAll(varied, ''))]
}

test('runs both stages in order, each on its own language, once', async () => {
  answers['/v1/messages'] = () => Response.json(answerIn('messages', speaking('a zebra and a lion')).whole)
  govern(
    term('pre_response', 'redact', 'lion', 'b'),
    term('post_request', 'redact', 'zebra', 'a'),
    deny('pre_response', 'response.text.contains("zebra")'),
    deny('post_request', 'response.text.contains("tiger")'),
  )
  const both = [
    ['post_request', 'redact'],
    ['pre_response', 'redact'],
  ]
  const whole = await ask('chat', 'anthropic', false)
  expect(await whole.text()).toContain('a [TERM] and a [TERM]')
  expect(results()).toEqual(both)
  answering('messages', speaking('a ze', 'bra and a li', 'on'))
  const streamed = await (await ask('chat', 'anthropic', true)).text()
  expect(read('chat', true, streamed).parts).toMatchObject([{ text: 'a [TERM] and a [TERM]' }])
  expect(results()).toEqual(both)
})

describe('recorded streams', () => {
  // Whatever ends in a letter may still become a match of this.
  const held = { patterns: [{ name: 'held', pattern: '[\\w ,.]{1,80}@@@' }], action: 'block' }
  const recorded = [
    { provider: 'chat', streams: recordings('openai-chat') },
    { provider: 'responses', streams: recordings('openai-responses') },
    { provider: 'messages', streams: recordings('anthropic-messages') },
  ] as const

  test('translate to the same answer however much of them is held before', async () => {
    for (const { provider, streams } of recorded) {
      for (const { bytes } of streams) {
        answers[routes[provider]] = () => new Response(new Uint8Array(bytes), eventStream)
        for (const caller of spoken) {
          if (caller === provider) continue
          const said = async (...policies: StoredPolicy[]) => {
            govern(...policies)
            const answer = await ask(caller, models[provider], true)
            const { parts, finish, usage } = read(caller, true, await answer.text())
            const { reason_code, event_cost_attribution } = running.worker.journal.outcomes().at(-1) ?? {}
            // Of what failed or was refused more or less is known than translation tells.
            return { parts, finish, usage, reason_code, cost: finish === 'stop' && event_cost_attribution }
          }
          const policed = policy({ id: 'h', kind: 'pattern-filter', stages: ['post_request'], config: held })
          expect(await said(policed)).toEqual(await said())
        }
      }
    }
  }, 60_000)
})

test('sends a changed signed thought without its signature and keeps its digits exact', async () => {
  const usage = { input_tokens: 5, output_tokens: 9 }
  const content = [
    { type: 'thinking', thinking: 'A zebra?', signature: 'c2ln' },
    { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'zebra', id: 0 } },
  ]
  const message = { id: 'm', type: 'message', role: 'assistant', content, stop_reason: 'tool_use', usage }
  const whole = JSON.stringify(message).replace('"id":0', '"id":12345678901234567890')
  answers['/v1/messages'] = () => new Response(whole, { headers: { 'content-type': 'application/json' } })
  govern()
  const before = await (await ask('chat', 'anthropic', false)).text()
  expect(before).toContain('c2ln')
  govern(rewrite)
  const after = await (await ask('chat', 'anthropic', false)).text()
  expect(after).not.toContain('c2ln')
  expect(read('chat', false, after).parts).toMatchObject([
    { kind: 'thought', text: 'A lion?' },
    { kind: 'tool_call', arguments: '{"at":"lion","id":12345678901234567890}' },
  ])
})

test('restores redacted request text after the post_request stage', async () => {
  const redact = policy({ id: 'pii', kind: 'pii', config: { types: ['email'], action: 'redact', restore: true } })
  govern(redact, deny('post_request', 'response.text.contains("ann@example.com")'))
  for (const stream of [false, true]) {
    answering('messages', speaking('To [EMAI', 'L_1] then'))
    const answer = await running.chat({
      ...{ model: 'anthropic', stream, max_tokens: 50 },
      messages: [{ role: 'user', content: 'Write to ann@example.com' }],
    })
    expect(read('chat', stream, await answer.text()).parts).toMatchObject([{ text: 'To ann@example.com then' }])
  }
})

describe('a stream held whole until a policy has seen it', () => {
  const long = 'word '.repeat(80)
  const begun = (texts: readonly string[]) => [
    { type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...texts.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  ]
  const unsaid = () => deny('post_request', 'response.text.contains("zebra")')

  test('is charged for its produced output when the client disconnects', async () => {
    let open: ReadableStreamDefaultController<Uint8Array> | null = null
    answers['/v1/messages'] = () =>
      new Response(
        new ReadableStream<Uint8Array>({
          start(controller) {
            open = controller
            controller.enqueue(new Uint8Array(messageFrames(begun([long]))))
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      )
    govern(unsaid())
    const leave = new AbortController()
    // It rejects where the caller has left before its answer began; what is recorded of it is looked at below.
    const asked = ask('chat', 'anthropic', true, { signal: leave.signal }).catch(() => null)
    await eventually(() => open !== null && running.worker.journal.opened.size > 0)
    await Bun.sleep(100)
    leave.abort()
    await asked
    await eventually(() => running.worker.journal.outcomes().length > 0)
    expect(running.worker.journal.outcomes()).toMatchObject([
      { reason_code: 'client.left', event_cost_attribution: { input_tokens: 5, output_tokens: 100, estimated: true } },
    ])
  })

  test('sends held text before the error of a broken stream', async () => {
    for (const given of [unsaid(), term('post_request', 'block')]) {
      govern(given)
      answers['/v1/messages'] = sse(messageFrames(begun([long, 'ze'])))
      const body = await (await ask('chat', 'anthropic', true)).text()
      expect(body).toContain('ze"')
      expect(body).toContain('upstream_provider_error')
      expect(running.worker.journal.outcomes().at(-1)).toMatchObject({ reason_code: 'provider.interrupted' })
    }
  })

  test('is refused beyond the number of bytes that can be held', async () => {
    await running.stop()
    ;({ running, answers } = await startTranslating({ stream_hold_bytes: 1024 }))
    answering('messages', speaking(...Array.from({ length: 20 }, () => long)))
    govern(unsaid())
    expect((await ask('chat', 'anthropic', true)).status).toBe(403)
    expect(results()).toEqual([['post_request', 'deny']])
    govern({ ...unsaid(), whenBroken: 'allow' })
    expect(await (await ask('chat', 'anthropic', true)).text()).toContain('[DONE]')
    expect(results()).toEqual([['post_request', 'allow']])
  })
})

describe('a policy that calls an outside service', () => {
  const hook = (url: string) =>
    policy({ id: 'hook', kind: 'webhook', stages: ['post_request'], config: { url, timeout_ms: 30_000 } })

  test('does not trigger the idle timeout of the provider', async () => {
    await running.stop()
    ;({ running, answers } = await startTranslating({ webhook_addresses: 'any', idle_timeout_seconds: 1 }))
    const shown: unknown[] = []
    const slow = Bun.serve({
      port: 0,
      async fetch(request) {
        shown.push(await request.json())
        await Bun.sleep(2500)
        return Response.json({ verdict: 'allow' })
      },
    })
    answering('messages', speaking('Hello'))
    govern(hook(`http://127.0.0.1:${slow.port}/`))
    const texts = await Promise.all(
      [false, true].map(async (stream) => await (await ask('chat', 'anthropic', stream)).text()),
    )
    await slow.stop(true)
    expect(texts.map((text) => text.includes('Hello'))).toEqual([true, true])
    const looked = { stage: 'post_request', response: { texts: [{ text: 'Hello' }, { kind: 'name' }] } }
    expect(shown).toMatchObject([looked, looked])
  })

  test('is cancelled with its exchange and affects no other', async () => {
    for (const stream of [false, true]) {
      let asked = 0
      const silent = Bun.serve({
        port: 0,
        idleTimeout: 0,
        fetch() {
          asked++
          return new Promise<Response>(() => undefined)
        },
      })
      answering('messages', speaking('Hello'))
      govern(hook(`http://127.0.0.1:${silent.port}/`))
      const answer = ask('chat', 'anthropic', stream).then((response) => response.text())
      await eventually(() => asked === 1)
      running.gateway.cutTokens([hashSecret(running.secret)])
      await answer.catch(() => 'cut')
      await silent.stop(true)
      const [outcome, ...more] = running.worker.journal.outcomes().slice(Number(stream))
      expect([outcome?.reason_code, outcome?.details?.policy_results, more]).toEqual(['token.revoked', undefined, []])
    }
  })
})

test('inspects the answer of a fallback from its beginning, in its own language', async () => {
  const given = { providerId: 'anthropic', upstreamModel: 'up-anthropic', fallbacks: ['openai'] }
  running.worker.catalog.push(testModel({ id: 'first', ...given }))
  answers['/v1/chat/completions'] = sse(answerIn('chat', speaking('a zebra')).stream)
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } }
  for (const refusal of [sse(messageFrames([overloaded])), () => Response.json(overloaded, { status: 529 })]) {
    answers['/v1/messages'] = refusal
    govern(term('post_request', 'redact'), term('pre_response', 'redact', 'TERM'))
    const body = await (await ask('chat', 'first', true)).text()
    expect(read('chat', true, body).parts).toMatchObject([{ text: 'a [[TERM]]' }])
    expect(results()).toEqual([
      ['post_request', 'redact'],
      ['pre_response', 'redact'],
    ])
  }
})

test('inspects a provider error as the caller receives it', async () => {
  const refusal = { type: 'error', error: { type: 'invalid_request_error', message: 'No zebra here' } }
  answers['/v1/messages'] = () => Response.json(refusal, { status: 400 })
  govern(term('post_request', 'redact'))
  const answer = await ask('chat', 'anthropic', false)
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { message: 'No [TERM] here' } }])
})
