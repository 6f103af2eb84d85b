/** What goes wrong between languages: streams that break off, fail or are none. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { messageFrames, messagesStream } from '../../../test/fakes/messages.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { TestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { geminiFrames, sse, startTranslating, type TranslatingGateway } from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway
let anthropic: Anthropic
let answers: TranslatingGateway['answers']

beforeEach(async () => {
  ;({ running, anthropic, answers } = await startTranslating())
})
afterEach(() => running.stop())

const awsStream = 'application/vnd.amazon.eventstream'
const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)

/** An exception as the only message of an AWS event stream. */
const awsFrame = (name: string, body: object): Uint8Array =>
  codec.encode({
    headers: {
      ':message-type': { type: 'string', value: 'exception' },
      ':exception-type': { type: 'string', value: name },
    },
    body: Buffer.from(JSON.stringify(body)),
  })

const words = 'Grüße aus 東京'
const hello = [{ role: 'user' as const, content: 'Hello' }]

describe('a failing translated answer', () => {
  const usage = { input_tokens: 20, cache_read_input_tokens: 4, cache_creation_input_tokens: 6, output_tokens: 1 }
  const begun = [
    { type: 'message_start', message: { id: 'm', usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } },
  ]
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } }

  test('is charged by the reported usage when the stream breaks or fails', async () => {
    answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([
        {
          candidates: [{ content: { role: 'model', parts: [{ text: words }] } }],
          usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 8 },
        },
      ]),
    )
    for (const frames of [begun, [...begun, overloaded]]) {
      answers['/v1/messages'] = sse(messageFrames(frames))
      await (await running.chat({ model: 'anthropic', messages: hello, stream: true })).text()
    }
    await (await running.chat({ model: 'gemini', messages: hello, stream: true })).text()
    const spent = { input_tokens: 30, cached_input_tokens: 4, output_tokens: 3, estimated: true }
    expect(running.worker.journal.outcomes()).toMatchObject([
      { reason_code: 'provider.interrupted', event_cost_attribution: spent },
      { reason_code: 'provider.error', event_cost_attribution: spent },
      { event_cost_attribution: { input_tokens: 5, output_tokens: 8, estimated: false } },
    ])
  })

  test('stays broken for the caller when the stream breaks in the middle', async () => {
    answers['/v1/messages'] = sse(messagesStream({ stopped: false }))
    const answer = await running.chat({ model: 'anthropic', messages: hello, stream: true })
    const text = await answer.text()
    expect(text).toContain('upstream_provider_error')
    expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
  })

  test('shows an error within the stream as the provider’s error', async () => {
    answers['/v1/messages'] = sse(
      Buffer.concat([
        messageFrames([{ type: 'message_start', message: { id: 'm', usage: { input_tokens: 3, output_tokens: 1 } } }]),
        messageFrames([{ type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } }]),
      ]),
    )
    const answer = await running.chat({ model: 'anthropic', messages: hello, stream: true })
    expect(await answer.text()).toContain('Too busy')
    expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
  })

  test('is answered by the next path, or refused, when the stream begins with an error', async () => {
    running.worker.catalog.push(
      testModel({ id: 'first', providerId: 'anthropic', upstreamModel: 'up-anthropic', fallbacks: ['openai'] }),
    )
    answers['/v1/messages'] = sse(messageFrames([overloaded]))
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const said = { ...chunk, choices: [{ index: 0, delta: { content: words }, finish_reason: 'stop' }] }
    answers['/v1/chat/completions'] = sse(`data: ${JSON.stringify(said)}\n\ndata: [DONE]\n\n`)
    const response = { id: 'r', object: 'response', status: 'completed', output: [] }
    const events = [
      { type: 'response.created', sequence_number: 0, response },
      { type: 'response.output_text.delta', sequence_number: 1, output_index: 0, content_index: 0, delta: words },
      { type: 'response.completed', sequence_number: 2, response },
    ]
    answers['/v1/responses'] = sse(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
    for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/responses']) {
      const ask = (model: string) =>
        fetch(running.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            ...{ model, stream: true },
            ...(path === '/v1/responses' ? { input: 'Hello' } : { messages: hello, max_tokens: 50 }),
          }),
        })
      expect(await (await ask('first')).text()).toContain(words)
      expect((await ask('anthropic')).status).toBe(529)
    }
    const outcomes = running.worker.journal.outcomes()
    expect(outcomes.map(({ verdict, reason_code }) => [verdict, reason_code])).toEqual([
      ['allow', 'ok'],
      ['error', 'provider.error'],
      ['allow', 'ok'],
      ['error', 'provider.error'],
      ['allow', 'ok'],
      ['error', 'provider.error'],
    ])
  })

  test('shows an error in the first event of a stream as if sent by status', async () => {
    const throttled = { message: 'Slow down' }
    const quota = { error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED' } }
    const converse = (name: string) => ({
      path: '/model/anthropic.claude:0/converse-stream',
      stream: () => new Response(awsFrame(name, throttled), { headers: { 'content-type': awsStream } }),
      refusal: (status: number) => Response.json(throttled, { status, headers: { 'x-amzn-errortype': name } }),
    })
    const first = [
      { model: 'bedrock', status: 429, ...converse('ThrottlingException') },
      { model: 'bedrock', status: 400, ...converse('ValidationException') },
      {
        ...{ model: 'gemini', status: 429, path: '/v1beta/models/up-gemini:streamGenerateContent' },
        stream: sse(geminiFrames([quota])),
        refusal: (status: number) => Response.json(quota, { status }),
      },
      {
        ...{ model: 'anthropic', status: 529, path: '/v1/messages', stream: sse(messageFrames([overloaded])) },
        refusal: (status: number) => Response.json(overloaded, { status }),
      },
    ]
    for (const { model, status, path, stream, refusal } of first) {
      for (const route of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
        const ask = async () => {
          const answer = await fetch(running.url + route, {
            method: 'POST',
            headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
            body: JSON.stringify({
              ...{ model, stream: true },
              ...(route === '/v1/responses' ? { input: 'Hello' } : { messages: hello, max_tokens: 50 }),
            }),
          })
          const { request_id: _, ...body }: Record<string, unknown> = JSON.parse((await answer.text()).toLowerCase())
          return { route, status: answer.status, retry: answer.headers.get('x-should-retry'), body }
        }
        answers[path] = stream
        const streamed = await ask()
        answers[path] = () => refusal(status)
        expect(streamed).toEqual(await ask())
        expect(streamed.status).toBe(status)
      }
    }
  })

  test('is sent to no other path when the first event of the stream refuses the request', async () => {
    const fallback = { providerId: 'bedrock', upstreamModel: 'anthropic.claude:0', fallbacks: ['openai'] }
    running.worker.catalog.push(testModel({ id: 'first', ...fallback }))
    answers['/model/anthropic.claude:0/converse-stream'] = () =>
      new Response(awsFrame('validationException', { message: 'Too long' }), { headers: { 'content-type': awsStream } })
    const answer = await running.chat({ model: 'first', messages: hello, stream: true })
    expect([answer.status, running.seen.length]).toEqual([400, 1])
    expect(await answer.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'validationException', message: 'Too long' },
    })
    expect(running.worker.journal.attempts()).toMatchObject([
      { reason_code: 'provider.error', details: { status: 400 } },
    ])
  })

  test('is 502 when it is not in the provider’s language', async () => {
    answers['/v1/messages'] = () => Response.json({ hello: 'world' })
    const answer = await running.chat({ model: 'anthropic', messages: hello })
    expect(answer.status).toBe(502)
    expect(running.worker.journal.outcomes()).toMatchObject([{ reason_code: 'provider.invalid_answer' }])
  })

  test('shows a policy block in the caller’s form', async () => {
    answers['/v1/chat/completions'] = sse(
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'the forbidden word' } }] })}\n\n` +
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
    )
    running.worker.policies = compilePolicySet([
      policy({
        id: 'p',
        kind: 'term-filter',
        stages: ['post_request'],
        config: { terms: ['forbidden'], action: 'block' },
      }),
    ])
    const stream = anthropic.messages.stream({ model: 'openai', max_tokens: 50, messages: hello })
    const thrown: unknown = await stream.finalMessage().catch((error: unknown) => error)
    expect(String(thrown)).toContain('content_policy_violation')
    expect(running.worker.journal.outcomes()).toMatchObject([{ verdict: 'block' }])
  })
})
