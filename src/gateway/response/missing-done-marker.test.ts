/** Providers that send all of an answer, and not the frame that ends it. */
import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { chat } from '../../languages/chat/dialect.ts'
import type { StreamReader } from '../../languages/dialect.ts'
import { messages } from '../../languages/messages/dialect.ts'
import type { Exchange } from '../exchange.ts'
import { question } from '../testing/gateway.ts'
import { eventStream, frame, policy, startPoliced } from '../testing/policies.ts'
import { relayScript, WordInspection } from '../testing/relay.ts'

const chunk = (content: string, index = 0) => frame({ choices: [{ index, delta: { content } }] })
const finish = (index = 0) => frame({ choices: [{ index, delta: {}, finish_reason: 'stop' }] })
const usage = frame({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })
const done = frame('[DONE]')

test('adds the done marker when every choice has finished', async () => {
  for (const chunks of [
    [chunk('a'), finish()],
    [chunk('a') + finish() + usage],
    [chunk('a'), chunk('b', 1), finish(1), finish(), usage],
  ]) {
    const { text, outcomes, attempts } = await relayScript(chat, { chunks, framed: true })
    expect(text).toBe(chunks.join('') + done)
    expect(outcomes).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
    expect(attempts).toMatchObject([{ reason_code: 'ok' }])
  }
})

test('treats the answer as broken when a choice has not finished or the connection may have failed', async () => {
  const messageStart = { type: 'message_start', message: { content: [], usage: { input_tokens: 1, output_tokens: 1 } } }
  const stopped = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }
  for (const [dialect, framed, chunks] of [
    [chat, true, [chunk('a')]],
    [chat, true, [usage]],
    [chat, true, [chunk('a'), chunk('b', 1), finish(1)]],
    [chat, true, [chunk('a'), finish(), chunk('b')]],
    [chat, true, [chunk('a'), finish(), 'data: {"choices":']],
    [chat, false, [chunk('a'), finish()]],
    [chat, { 'transfer-encoding': 'identity' }, [chunk('a'), finish()]],
    [chat, { 'transfer-encoding': 'identity', 'content-length': '9' }, [chunk('a'), finish()]],
    [messages, true, [frame(messageStart), frame(stopped)]],
  ] as const) {
    const { text, outcomes } = await relayScript(dialect, { chunks, framed })
    expect(text).toContain('upstream_provider_error')
    expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
  }
})

test('treats an answer that lacks a requested choice as broken', async () => {
  const asking = (n: number) => (exchange: Exchange) => {
    exchange.facts = chat.read({ model: 'm', stream: true, n })
  }
  const one = [chunk('a'), finish(), usage]
  const both = [chunk('a'), chunk('b', 1), finish(), finish(1), usage]
  for (const [n, chunks] of [
    [2, one],
    [2, [chunk('a'), chunk('b', 1), finish()]],
    [3, both],
  ] as const) {
    for (const inspect of [
      undefined,
      (reader: StreamReader) => new WordInspection(reader, 'x', () => new Failure('internal')),
    ]) {
      const { text, outcomes } = await relayScript(chat, {
        chunks,
        framed: true,
        prepare: asking(n),
        ...(inspect && { inspect }),
      })
      expect(text).toContain('upstream_provider_error')
      expect(outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
    }
  }
  for (const [n, chunks] of [
    [1, one],
    [1, both],
    [2, both],
  ] as const) {
    const { text } = await relayScript(chat, { chunks, framed: true, prepare: asking(n) })
    expect(text).toBe(chunks.join('') + done)
  }
})

test('ignores filter results that arrive after the end of a choice', async () => {
  const found = {
    content_filter_results: { hate: { filtered: false, severity: 'safe' } },
    content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 198 },
  }
  for (const more of [
    {},
    { delta: null },
    { delta: {} },
    { delta: { role: 'assistant', content: '', tool_calls: [] } },
  ]) {
    const late = { id: '', model: '', object: '', choices: [{ index: 0, finish_reason: null, ...more, ...found }] }
    const chunks = [chunk('a'), finish(), frame(late)]
    const { text, outcomes } = await relayScript(chat, { chunks, framed: true })
    expect(text).toBe(chunks.join('') + done)
    expect(outcomes).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
    const unfinished = await relayScript(chat, { chunks: [chunk('a'), frame(late)], framed: true })
    expect(unfinished.outcomes).toMatchObject([{ reason_code: 'provider.interrupted' }])
  }
  for (const goesOn of [
    { delta: { refusal: 'b' } },
    { delta: { tool_calls: [{ index: 0, function: { arguments: '{' } }] } },
    { delta: {}, text: 'b' },
  ]) {
    const chunks = [chunk('a'), finish(), frame({ choices: [{ index: 0, finish_reason: null, ...goesOn }] })]
    const { outcomes } = await relayScript(chat, { chunks, framed: true })
    expect(outcomes).toMatchObject([{ reason_code: 'provider.interrupted' }])
  }
})

test('accepts a last frame without its blank line when the end is certain', async () => {
  const stop = () => new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'bad' } })
  const inspect = (reader: StreamReader) => new WordInspection(reader, 'forbidden', stop)
  for (const [end, added] of [
    ['', '\n\n'],
    ['\n', '\n'],
    ['\r\n', '\n'],
    ['\r', '\n\n'],
  ] as const) {
    const last = finish().trimEnd() + end
    for (const chunks of [[chunk('a'), last], [chunk('a') + last], [chunk('a'), usage, ...last]]) {
      for (const given of [{}, { inspect }]) {
        const { text, outcomes } = await relayScript(chat, { chunks, framed: true, ...given })
        expect(text).toBe(chunks.join('') + added + done)
        expect(outcomes).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
      }
    }
    const unsure = await relayScript(chat, { chunks: [chunk('a'), last] })
    expect(unsure.text).toContain('upstream_provider_error')
  }
  const alone = await relayScript(chat, { chunks: [finish().trimEnd()], framed: true, inspect })
  expect(alone.text).toBe(finish() + done)
  const counted = await relayScript(chat, { chunks: [chunk('a') + finish(), usage.trimEnd()], framed: true })
  expect(counted.exchange.call.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
  const commented = await relayScript(chat, { chunks: [chunk('a') + finish(), ': bye\n'], framed: true })
  expect(commented.text).toBe(chunk('a') + finish() + done)
  const refused = frame({ error: { message: 'no', code: 'c' } }).trimEnd()
  const failed = await relayScript(chat, { chunks: [chunk('a'), refused], framed: true })
  expect(failed.text).toBe(`${chunk('a')}${refused}\n\n${done}`)
  expect(failed.outcomes).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
})

test('sends held text before the added done marker, and adds none after a block', async () => {
  const stop = () => new Failure('content_policy_violation', { verdictan: { verdict: 'BLOCK', reason_code: 'bad' } })
  const held = await relayScript(chat, {
    chunks: [chunk('a forbid'), finish()],
    framed: true,
    inspect: (reader) => new WordInspection(reader, 'forbidden', stop),
  })
  expect(held.text).toContain('"forbid"')
  expect(held.text).toEndWith(done)
  expect(held.text).not.toContain('error')
  const stopped = await relayScript(chat, {
    chunks: [chunk('a'), finish()],
    framed: true,
    inspect: () => ({
      take: ({ bytes }) => ({ bytes, stop: null }),
      end: () => ({ bytes: null, stop: stop() }),
    }),
  })
  expect(stopped.text).toStartWith(chunk('a') + finish())
  expect(stopped.text).toContain('content_policy_violation')
  expect(stopped.outcomes).toMatchObject([{ verdict: 'block', reason_code: 'bad' }])
})

test('gives a whole-answer policy the whole answer when its done marker is missing', async () => {
  const stream = chunk('a zebra') + finish()
  for (const [word, status] of [
    ['zebra', 403],
    ['lion', 200],
  ] as const) {
    const denies = policy({
      id: 'a',
      kind: 'condition',
      stages: ['post_request'],
      when: `response.text.contains("${word}")`,
      config: { verdict: 'deny', reason_code: 'c.c' },
    })
    const gateway = await startPoliced([denies], () => new Response(stream, eventStream))
    const answer = await gateway.chat({ ...question, stream: true })
    const text = await answer.text()
    await gateway.stop()
    expect(answer.status).toBe(status)
    if (status === 200) expect(text).toBe(stream + done)
    else expect(text).not.toContain('zebra')
  }
})
