/** The relay with an inspection: what waits, what ends a stream, and what either costs others. */
import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { chat } from '../../languages/chat/dialect.ts'
import type { Dialect, StreamReader } from '../../languages/dialect.ts'
import { messages } from '../../languages/messages/dialect.ts'
import { responses } from '../../languages/responses/dialect.ts'
import { completedUsage } from '../accounting/usage.ts'
import { cutExchange, type Exchange, required } from '../exchange.ts'
import { relayScript, WordInspection } from '../testing/relay.ts'

const block = () =>
  new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'terms.bad' } })
const escalate = () =>
  new Failure('policy.escalated', {
    verdictan: { verdict: 'ESCALATE', reason_code: 'review', escalation: { id: 'e-1', status: 'queued' } },
  })

const chunk = (content: string) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
const done = 'data: [DONE]\n\n'
const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
const created = event('response.created', { sequence_number: 0, response: { id: 'resp_1', output: [] } })
const textDelta = (number: number, delta: string) =>
  event('response.output_text.delta', {
    sequence_number: number,
    item_id: 'msg_1',
    output_index: 0,
    content_index: 0,
    delta,
  })
const messageStart = event('message_start', { message: { content: [], usage: { input_tokens: 1, output_tokens: 1 } } })
const blockStart = event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
const blockDelta = (text: string) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })

const stopAt = (failure: () => Failure) => (reader: StreamReader) => new WordInspection(reader, 'forbidden', failure)

test('holds text that may become a match and sends it once it cannot', async () => {
  const { text, outcomes } = await relayScript(chat, {
    chunks: [chunk('a for'), chunk('b forbid'), finish, done],
    inspect: stopAt(block),
  })
  const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content)
  expect(contents.join('|')).toBe('a |forb |forbid')
  expect(text.indexOf('forbid"')).toBeLessThan(text.indexOf('finish_reason":"stop'))
  expect(outcomes).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
})

test('ends the stream with the error of its dialect on a block, records it and cancels the provider', async () => {
  const scripts: readonly [Dialect, string[], (text: string) => void][] = [
    [
      chat,
      [chunk('a for'), chunk('bidden b')],
      (text) => {
        const [, error, end] = text.trim().split('\n\n').slice(-3)
        expect(end).toBe('data: [DONE]')
        expect(JSON.parse(error?.slice(6) ?? '')).toMatchObject({
          error: { code: 'content_policy_violation', type: 'invalid_request_error' },
          verdictan: { verdict: 'BLOCK', reason_code: 'terms.bad' },
        })
      },
    ],
    [
      responses,
      [created, textDelta(1, 'a for'), textDelta(2, 'bidden b')],
      (text) => {
        const last = text.trim().split('\n\n').at(-1) ?? ''
        expect(last).toStartWith('event: error\ndata: ')
        expect(JSON.parse(last.split('data: ')[1] ?? '')).toMatchObject({
          type: 'error',
          code: 'content_policy_violation',
          sequence_number: 3,
          verdictan: { verdict: 'BLOCK' },
        })
      },
    ],
    [
      messages,
      [messageStart, blockStart, blockDelta('a for'), blockDelta('bidden b')],
      (text) => {
        const last = text.trim().split('\n\n').at(-1) ?? ''
        expect(last).toStartWith('event: error\ndata: ')
        expect(JSON.parse(last.split('data: ')[1] ?? '')).toMatchObject({
          type: 'error',
          error: { type: 'invalid_request_error', code: 'content_policy_violation' },
          request_id: 'request-1',
          verdictan: { verdict: 'BLOCK', reason_code: 'terms.bad' },
        })
      },
    ],
  ]
  for (const [dialect, chunks, check] of scripts) {
    const { answer, text, outcomes, exchange } = await relayScript(dialect, {
      chunks,
      inspect: stopAt(block),
      open: true,
    })
    expect(answer.status).toBe(200)
    expect(text).toContain('"a ')
    expect(text).not.toContain('for')
    check(text)
    expect(outcomes).toMatchObject([{ verdict: 'block', reason_code: 'terms.bad', details: { status: 200 } }])
    expect(exchange.call.abort.signal.aborted).toBe(true)
  }
})

test('sends the same answer and no part of blocked text, wherever the bytes are split', async () => {
  const streams: readonly [Dialect, string][] = [
    [chat, chunk('ü forb') + chunk('id forbidd') + chunk('en b') + finish + done],
    [responses, created + textDelta(1, 'ü forb') + textDelta(2, 'id forbidd') + textDelta(3, 'en b')],
    [messages, messageStart + blockStart + blockDelta('ü forb') + blockDelta('id forbidd') + blockDelta('en b')],
  ]
  for (const [dialect, text] of streams) {
    const bytes = Buffer.from(text)
    const script = { inspect: stopAt(block), open: true }
    const whole = await relayScript(dialect, { ...script, chunks: [bytes] })
    expect(whole.text).toContain('"forbid "')
    expect(whole.text).not.toContain('forbidd')
    for (let cut = 1; cut < bytes.length; cut++) {
      const { text: passed, outcomes } = await relayScript(dialect, {
        ...script,
        chunks: [bytes.subarray(0, cut), bytes.subarray(cut)],
      })
      if (passed !== whole.text) expect([cut, passed]).toEqual([cut, whole.text])
      expect(outcomes.map(({ verdict }) => verdict)).toEqual(['block'])
    }
  }
})

test('answers a whole error when text is blocked before anything was sent', async () => {
  const { answer, text, outcomes } = await relayScript(chat, {
    chunks: [chunk('forbidden')],
    inspect: stopAt(block),
    open: true,
  })
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([400, 'BLOCK'])
  expect(answer.headers.get('x-should-retry')).toBe('false')
  expect(JSON.parse(text)).toMatchObject({
    error: { code: 'content_policy_violation' },
    verdictan: { verdict: 'BLOCK' },
  })
  expect(outcomes).toMatchObject([{ verdict: 'block', reason_code: 'terms.bad', details: { status: 400 } }])
})

test('answers an escalation before any text as the stream of the family, with its header', async () => {
  const types: Record<string, readonly string[]> = {
    chat: ['chat.completion.chunk'],
    responses: [
      ...['response.created', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.incomplete'],
    ],
    messages: ['message_start', 'message_delta', 'message_stop'],
  }
  const firsts = [
    [chat, chunk('forbidden')],
    [responses, textDelta(0, 'forbidden')],
    [messages, blockDelta('forbidden')],
  ] as const
  for (const [dialect, first] of firsts) {
    const { answer, text, outcomes } = await relayScript(dialect, {
      chunks: [first],
      inspect: stopAt(escalate),
      open: true,
    })
    expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
    expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
    const said = [...text.matchAll(/data: (\{.*\})/g)].map(([, data]) => JSON.parse(data ?? ''))
    expect(said.map(({ object, type }) => object ?? type)).toEqual([...(types[dialect.family] ?? [])])
    expect(text).toContain('"escalation":{"id":"e-1","status":"queued"}')
    expect(outcomes).toMatchObject([{ verdict: 'escalate', reason_code: 'review' }])
  }
})

test('shows an escalation after sent text only in the last frames', async () => {
  const { text } = await relayScript(responses, {
    chunks: [created, textDelta(1, 'a '), textDelta(2, 'forbidden')],
    inspect: stopAt(escalate),
    open: true,
  })
  expect(text.match(/event: (\S+)/g)).toEqual([
    'event: response.created',
    'event: response.output_text.delta',
    'event: response.incomplete',
  ])
})

test('hides frames that only the gateway requested from the inspection and the caller', async () => {
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n'
  let inspection: WordInspection | null = null
  const { text, exchange } = await relayScript(chat, {
    chunks: [chunk('a') + finish + usage + done],
    inspect: (reader) => {
      inspection = new WordInspection(reader, 'forbidden', block)
      return inspection
    },
    prepare: ({ edits }) => edits.set('stream_options', '{"include_usage":true}'),
  })
  expect(text).toBe(chunk('a') + finish + done)
  expect(exchange.call.usage).toMatchObject({ inputTokens: 3, outputTokens: 4 })
  expect((inspection as WordInspection | null)?.seen.map(({ data }) => data)).not.toContain(usage.slice(6, -2))
  const plain = await relayScript(chat, {
    chunks: [chunk('a') + finish + usage + done],
    prepare: ({ edits }) => edits.set('stream_options', '{"include_usage":true}'),
  })
  expect(plain.text).toBe(chunk('a') + finish + done)
})

test('holds everything, comments too, while an inspection holds the head', async () => {
  const held: Uint8Array[] = []
  const { text } = await relayScript(chat, {
    chunks: [': open\n\n', chunk('a'), chunk('b') + finish, done],
    inspect: () => ({
      take(frame, facts) {
        held.push(frame.bytes)
        return { bytes: facts?.terminal ? Buffer.concat(held) : null, stop: null }
      },
      end: () => ({ bytes: null, stop: null }),
    }),
  })
  expect(text).toBe(`: open\n\n${chunk('a')}${chunk('b')}${finish}${done}`)
})

test('lets an inspection call an outside service', async () => {
  const { text } = await relayScript(chat, {
    chunks: [chunk('a') + chunk('b'), finish + done],
    inspect: () => ({
      async take({ bytes }) {
        await Bun.sleep(1)
        return { bytes, stop: null }
      },
      end: () => ({ bytes: null, stop: null }),
    }),
  })
  expect(text).toBe(chunk('a') + chunk('b') + finish + done)
})

test('starts no answer when the stream is cut while an outside service inspects its first frame', async () => {
  let running: Exchange | null = null
  const { text, answer, outcomes } = await relayScript(chat, {
    chunks: [chunk('a')],
    open: true,
    prepare(exchange) {
      running = exchange
    },
    inspect: () => ({
      async take({ bytes }) {
        await Bun.sleep(1)
        if (running !== null) cutExchange(running, 'token.revoked', new Failure('invalid_api_token'))
        return { bytes, stop: null }
      },
      end: () => ({ bytes: null, stop: null }),
    }),
  })
  expect([answer.status, text.includes('"a"')]).toEqual([401, false])
  expect(outcomes).toMatchObject([{ verdict: 'deny', reason_code: 'token.revoked' }])
})

test('answers an error for a stream that cannot be inspected and passes none of it', async () => {
  const { text, outcomes } = await relayScript(chat, {
    chunks: [chunk('a') + chunk('b') + done],
    inspect: () => ({
      take({ bytes, data }) {
        if (data?.includes('"b"')) throw new RangeError('too deep')
        return { bytes, stop: null }
      },
      end: () => ({ bytes: null, stop: null }),
    }),
  })
  expect(text).toStartWith(chunk('a'))
  expect(text).not.toContain('"b"')
  expect(text).toContain('upstream_provider_error')
  expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.invalid_answer' }])
})

test('sends the held text of a broken stream, then its error', async () => {
  const { text, outcomes } = await relayScript(chat, { chunks: [chunk('a forbid')], inspect: stopAt(block) })
  expect(text).toContain('"content":"forbid"')
  expect(text).toContain('upstream_provider_error')
  expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
})

test('reports the verdict and reason of the policies in the outcome, not those of the call', async () => {
  const { outcomes, attempts } = await relayScript(chat, {
    chunks: [chunk('a'), done],
    prepare(exchange) {
      exchange.verdict = 'redact'
      const result = {
        policy_id: 'p',
        kind: 'pii',
        stage: 'pre_request',
        latency_ms: 0,
        targets: [],
        mode: 'enforce',
      } as const
      exchange.policyResults.push({ ...result, verdict: 'redact', reason_code: 'pii.email' })
    },
  })
  expect(outcomes).toMatchObject([{ verdict: 'redact', reason_code: 'pii.email' }])
  expect(attempts).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
})

test('reads on after a provider error until the stream ends', async () => {
  const error = event('error', { sequence_number: 1, error: { code: 'quota', message: 'none left' } })
  const failed = event('response.failed', { sequence_number: 2, response: { id: 'resp_1', error: { code: 'quota' } } })
  const { text, outcomes } = await relayScript(responses, { chunks: [created, error, failed], open: true })
  expect(text).toBe(created + error + failed)
  expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
  const short = await relayScript(responses, { chunks: [created, error] })
  expect(short.text).toBe(created + error)
})

test('counts output by its text when the provider has not reported usage yet', async () => {
  const { exchange } = await relayScript(messages, { chunks: [messageStart, blockStart, blockDelta('abcdefgh')] })
  const { usage, estimated } = completedUsage(exchange, required(exchange.call.usage))
  expect([usage.inputTokens, usage.outputTokens, estimated]).toEqual([1, 2, true])
})

test('answers an error in its dialect when a messages stream ends without message_stop', async () => {
  const { text, outcomes } = await relayScript(messages, { chunks: [messageStart, blockStart, blockDelta('a')] })
  const last = text.trim().split('\n\n').at(-1) ?? ''
  expect(JSON.parse(last.split('data: ')[1] ?? '')).toMatchObject({
    type: 'error',
    error: { type: 'api_error', code: 'upstream_provider_error' },
  })
  expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
})

test('books a held answer by the number of its frames, even when many arrive at once', async () => {
  const processorTime = async (frames: number) => {
    const held: Uint8Array[] = []
    const before = process.cpuUsage()
    const { outcomes } = await relayScript(chat, {
      chunks: [': k\n\n'.repeat(frames) + finish + done],
      inspect: () => ({
        take(frame, facts) {
          held.push(frame.bytes)
          return { bytes: facts?.terminal ? Buffer.concat(held) : null, stop: null }
        },
        end: () => ({ bytes: null, stop: null }),
      }),
    })
    expect(outcomes).toMatchObject([{ verdict: 'allow' }])
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  await processorTime(2_000)
  // Sixteen where each frame costs the same, 256 where it costs what is behind it.
  const ratios: number[] = []
  for (let round = 0; round < 3; round++) ratios.push((await processorTime(32_000)) / (await processorTime(2_000)))
  expect(Math.min(...ratios)).toBeLessThan(80)
})

test('yields to the event loop within many small frames, and a cut ends them', async () => {
  for (const isCut of [false, true]) {
    let [turns, over, taken] = [0, false, 0]
    const tick = () => {
      turns++
      if (!over) setImmediate(tick)
    }
    const exchanges: Exchange[] = []
    const { text, outcomes } = await relayScript(chat, {
      chunks: [': k\n\n'.repeat(10_000) + finish + done],
      prepare: (exchange) => exchanges.push(exchange),
      inspect: () => ({
        take(frame, facts) {
          if (taken++ === 0) tick()
          if (taken === 1000 && isCut)
            cutExchange(required(exchanges[0] ?? null), 'gateway.drained', new Failure('draining'))
          over = facts?.terminal === true
          return { bytes: frame.bytes, stop: null }
        },
        end: () => ({ bytes: null, stop: null }),
      }),
    })
    over = true
    expect(text.match(/\[DONE\]/g)).toHaveLength(1)
    if (!isCut) expect(turns).toBeGreaterThan(20)
    expect(taken < 10_000).toBe(isCut)
    expect(text.includes('"code":"draining"')).toBe(isCut)
    const expected = isCut ? { verdict: 'error', reason_code: 'gateway.drained' } : { verdict: 'allow' }
    expect(outcomes).toMatchObject([expected])
  }
})
