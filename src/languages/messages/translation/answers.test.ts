/** Answers and streams of the messages language, there and back, and as the official client reads them. */
import { expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import type { NeutralEvent } from '../../neutral.ts'
import { anthropicReading, asked, written } from '../../testing/clients.ts'
import { collected } from '../../translation/collect-stream.ts'
import { messages } from './language.ts'

const { provider, caller } = messages

const readBySdk = (events: readonly NeutralEvent[]) =>
  anthropicReading(written(caller, events))
    .messages.stream({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'a' }] })
    .finalMessage()

const said = (message: Anthropic.Message) =>
  message.content.flatMap((block): unknown[] => {
    if (block.type === 'text') return [['text', block.text]]
    if (block.type === 'thinking') return [['thinking', block.thinking, block.signature]]
    return block.type === 'tool_use' ? [['tool_use', block.id, block.name, block.input]] : []
  })

/** Parts whose pieces come in any order, as parallel calls may. */
const interleaved = fc
  .array(
    fc.record({ kind: fc.constantFrom('text', 'thought', 'tool_call'), pieces: fc.array(fc.string({ minLength: 1 })) }),
    { minLength: 1, maxLength: 4 },
  )
  .chain((parts) => {
    const turns = parts.flatMap(({ pieces }, part) => [...pieces.map(() => part), part])
    return fc.tuple(fc.constant(parts), fc.shuffledSubarray(turns, { minLength: turns.length }), fc.boolean())
  })

test('writes interleaved parts as consecutive blocks without loss', async () => {
  await fc.assert(
    fc.asyncProperty(interleaved, async ([parts, order, ends]) => {
      const events: NeutralEvent[] = [{ type: 'start', id: 'msg_1', model: 'm' }]
      for (const [part, { kind }] of parts.entries()) {
        if (kind === 'tool_call') events.push({ type: 'part', part, kind, id: `call_${part}`, name: 'look' })
        else if (kind === 'thought') events.push({ type: 'part', part, kind, language: 'messages' })
        else events.push({ type: 'part', part, kind: 'text' })
      }
      const next = parts.map(() => 0)
      for (const part of order) {
        const { kind, pieces } = parts[part] ?? { kind: '', pieces: [] }
        const place = next[part] ?? 0
        next[part] = place + 1
        const text = kind === 'tool_call' ? argumentsIn(pieces, place) : pieces[place]
        if (text !== undefined) events.push({ type: 'text', part, text })
        else if (ends) events.push({ type: 'part_end', part })
      }
      events.push({ type: 'finish', finish: 'tool_calls', stopSequence: null }, { type: 'end' })
      const message = await readBySdk(events)
      const expected = (kind: string) => parts.flatMap((part) => (part.kind === kind ? part.pieces.join('') : []))
      const texts = (type: string) =>
        said(message).flatMap((block) => (Array.isArray(block) && block[0] === type ? [block[1]] : []))
      expect(letters(texts('text'))).toBe(letters(expected('text')))
      expect(letters(texts('thinking'))).toBe(letters(expected('thought')))
      const calls = message.content.filter((block) => block.type === 'tool_use')
      // In the order in which they began, whichever said its arguments first.
      expect(calls.map(({ id, input }) => [id, input])).toEqual(
        parts.flatMap(({ kind, pieces }, part) => (kind === 'tool_call' ? [[`call_${part}`, inputOf(pieces)]] : [])),
      )
    }),
    { numRuns: 25 },
  )
})

/** Texts whose pieces alternate have no one order: what they are made of counts. */
const letters = (texts: readonly unknown[]): string => [...texts.join('')].sort().join('')

/** A piece of the JSON text of an object, as many as the part has; undefined where it has no more. */
function argumentsIn({ length }: readonly string[], place: number): string | undefined {
  if (place >= length) return undefined
  return `${place === 0 ? '{"v":"' : ''}x${place === length - 1 ? '"}' : ''}`
}
const inputOf = ({ length }: readonly string[]): unknown => (length === 0 ? {} : { v: 'x'.repeat(length) })

test('a text that follows another is passed on at once, and a second call waits for the first', () => {
  const writer = caller.streamWriter(asked)
  writer.event({ type: 'start', id: null, model: null })
  for (const part of [1, 2]) writer.event({ type: 'part', part, kind: 'tool_call', id: `${part}`, name: 'f' })
  writer.event({ type: 'part', part: 0, kind: 'text' })
  expect(writer.event({ type: 'text', part: 0, text: 'a' })).toContain('"text":"a"')
  expect(writer.event({ type: 'text', part: 1, text: '{}' })).toContain('content_block_stop')
  expect(writer.event({ type: 'text', part: 2, text: '{}' })).toBe('')
  expect(writer.event({ type: 'part_end', part: 1 })).toContain('"id":"2"')
  expect(writer.event({ type: 'text', part: 2, text: ' ' })).toContain('"partial_json":" "')
})

test('a whole answer survives the way there and back', () => {
  const body = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'd' },
      {
        type: 'text',
        text: 'a',
        citations: [{ type: 'char_location', cited_text: 'c', document_index: 0, document_title: 't' }],
      },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { a: 1 } },
    ],
    stop_reason: 'stop_sequence',
    stop_sequence: '!',
    usage: {
      input_tokens: 3,
      cache_read_input_tokens: 4,
      cache_creation_input_tokens: 5,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
      output_tokens: 6,
      output_tokens_details: { thinking_tokens: 1 },
    },
  }
  const answer = provider.readAnswer(body)
  expect(answer.usage).toMatchObject({ inputTokens: 12, cachedInputTokens: 4, cacheWriteTokens: 5 })
  expect(caller.writeAnswer(answer, asked)).toEqual(body)
})

test('a refusal keeps its words, and a failed answer raises an error', async () => {
  const refusal: NeutralEvent[] = [
    { type: 'part', part: 0, kind: 'refusal' },
    { type: 'text', part: 0, text: 'No.' },
    { type: 'finish', finish: 'refusal', stopSequence: null },
    { type: 'end' },
  ]
  expect(await readBySdk(refusal)).toMatchObject({
    content: [],
    stop_reason: 'refusal',
    stop_details: { explanation: 'No.' },
  })
  expect(caller.writeAnswer(collected(refusal), asked)).toMatchObject({ stop_details: { explanation: 'No.' } })
  const failed = readBySdk([{ type: 'finish', finish: 'error', stopSequence: null }, { type: 'end' }])
  expect(await failed.catch((error: unknown) => error)).toBeInstanceOf(Anthropic.APIError)
})

test('a stream that failed has no stop reason, only its error', () => {
  const writer = caller.streamWriter(asked)
  writer.event({ type: 'part', part: 0, kind: 'text' })
  writer.event({ type: 'text', part: 0, text: 'Half of it' })
  writer.event({ type: 'finish', finish: 'error', stopSequence: null })
  expect(writer.event({ type: 'end' })).toMatch(/^event: error\ndata: .*"api_error".*\n\n$/)
})

test('errors keep their status, code and message', () => {
  const error = { status: 429, code: 'rate_limited', message: 'Slow down' }
  const body = caller.writeError(error)
  expect(body).toEqual({
    type: 'error',
    error: { type: 'rate_limit_error', code: 'rate_limited', message: 'Slow down' },
  })
  expect(provider.readError(429, body)).toEqual(error)
  expect(provider.readError(500, 'none')).toMatchObject({ status: 500, code: null })
})
