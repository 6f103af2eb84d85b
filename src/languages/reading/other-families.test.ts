/** The families whose answers no policy reads: what is read of their requests, answers and streams. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, waitingWords } from '../../failure.ts'
import { speech } from '../audio/speech.ts'
import { transcriptions } from '../audio/transcriptions.ts'
import { translations } from '../audio/translations.ts'
import { chat } from '../chat/dialect.ts'
import { completions } from '../completions/dialect.ts'
import type { Dialect } from '../dialect.ts'
import { embeddings } from '../embeddings/dialect.ts'
import { families as rows } from '../families.ts'
import { imageEdits, images } from '../images/dialect.ts'
import { messages } from '../messages/dialect.ts'
import { moderations } from '../moderations/dialect.ts'
import { responses } from '../responses/dialect.ts'

const families = [embeddings, transcriptions, translations, speech, completions, moderations, images, imageEdits]

/** Replaces each text by its own upper case, as a policy would. */
function shouted(dialect: Dialect, body: Record<string, unknown>): Record<string, unknown> {
  for (const slot of dialect.requestText(body)) slot.replace(slot.text.toUpperCase())
  return body
}

test('only the request is open to policies, and an escalation is refused, but for completions', () => {
  for (const dialect of families) {
    expect(rows[dialect.family].policyStages).toEqual(['pre_request'])
    expect(dialect.answerText({ choices: [{ text: 'x' }] })).toEqual([])
  }
  const refusing = families.filter(({ family }) => family !== 'completions')
  const verdictan = { verdict: 'ESCALATE', reason_code: 'x' }
  const id = '01990000-0000-7000-8000-000000000001'
  for (const dialect of refusing) {
    expect(dialect.escalation(dialect.read({ model: 'm' }), verdictan, id)).toBeNull()
  }
  const waiting = completions.escalation(completions.read({ model: 'm' }), verdictan, id)
  expect(waiting).toMatchObject({
    object: 'text_completion',
    choices: [{ text: waitingWords(verdictan), finish_reason: 'content_filter' }],
  })
})

test('every family but moderations needs a model', () => {
  for (const dialect of families.filter((one) => one !== moderations)) {
    for (const body of [{}, { model: 7 }, { model: '' }]) expect(() => dialect.read(body)).toThrow(Failure)
  }
  expect(moderations.read({ input: 'x' }).model).toBe('omni-moderation-latest')
  expect(() => moderations.read({ model: 7 })).toThrow(Failure)
})

test('the texts of a request are found and replaced wherever they stand', () => {
  const embed = (input: unknown) => shouted(embeddings, { model: 'm', input }).input
  expect([embed('a'), embed(['a', 'b']), embed([1, 2]), embed([[1], [2]])]).toEqual([
    'A',
    ['A', 'B'],
    [1, 2],
    [[1], [2]],
  ])
  expect(shouted(speech, { input: 'say', instructions: 'softly', voice: 'x' })).toEqual({
    input: 'SAY',
    instructions: 'SOFTLY',
    voice: 'x',
  })
  const picture = { type: 'image_url', image_url: { url: 'http://host/x' } }
  expect(shouted(moderations, { input: [{ type: 'text', text: 'a' }, picture] })).toEqual({
    input: [{ type: 'text', text: 'A' }, picture],
  })
  expect(shouted(completions, { prompt: ['a', 'b'], suffix: 'c' })).toEqual({ prompt: ['A', 'B'], suffix: 'C' })
  expect(shouted(transcriptions, { prompt: 'names', language: 'de' })).toEqual({ prompt: 'NAMES', language: 'de' })
})

test('reads the members that bound the cost: prompts, answers for each, their limit', () => {
  const read = (body: object) => completions.read({ model: 'm', ...body })
  expect(read({ prompt: 'a', best_of: 0 })).toMatchObject({ choices: 1 })
  expect(read({ prompt: 'a', max_tokens: 5, n: 2, best_of: 3 })).toMatchObject({ outputLimit: 5, choices: 3 })
  expect(read({ prompt: ['a', 'b'], n: 2 })).toMatchObject({ outputLimit: null, choices: 4 })
  expect(read({ prompt: [1, 2, 3] })).toMatchObject({ choices: 1, inputEstimate: 3 })
  expect(() => read({ max_tokens: 'many' })).toThrow(Failure)
  expect(embeddings.read({ model: 'm', input: ['abcd', 'efgh'] })).toMatchObject({ inputEstimate: 2, outputLimit: 0 })
  const file = { filename: 'a.wav', content_type: null, bytes: 16_000 }
  expect(transcriptions.read({ model: 'm', file, prompt: 'abcd' })).toMatchObject({ inputEstimate: 11 })
  expect(moderations.read({ input: [{ type: 'image_url' }] }).beyondBody).toBe(true)
})

test('reads the stream flag of each family', () => {
  expect(embeddings.read({ model: 'm', stream: true }).stream).toBe(false)
  expect(speech.read({ model: 'm', stream_format: 'sse' }).stream).toBe(true)
  expect(speech.read({ model: 'm', stream_format: 'audio' }).stream).toBe(false)
  expect(transcriptions.read({ model: 'm', stream: 'true' }).stream).toBe(true)
  expect(transcriptions.read({ model: 'm', stream: 'False' }).stream).toBe(false)
  expect(() => transcriptions.read({ model: 'm', stream: 'yes' })).toThrow(Failure)
})

test('the usage of a whole answer is read in each of its forms', () => {
  expect(embeddings.readAnswer({ usage: { prompt_tokens: 7, total_tokens: 7 } }).usage).toMatchObject({
    inputTokens: 7,
    outputTokens: 0,
  })
  const tokens = { type: 'tokens', input_tokens: 9, output_tokens: 4, input_token_details: { audio_tokens: 8 } }
  expect(transcriptions.readAnswer({ text: 'four', usage: tokens })).toMatchObject({
    usage: { inputTokens: 9, outputTokens: 4, audioInputTokens: 8 },
    textLength: 4,
  })
  expect(transcriptions.readAnswer({ usage: { type: 'duration', seconds: 2.5 } }).usage).toMatchObject({
    audioSeconds: 2.5,
    inputTokens: null,
  })
  expect(
    completions.readAnswer({ choices: [{ text: 'ab' }, { text: 'c' }], usage: { prompt_tokens: 1 } }),
  ).toMatchObject({
    usage: { inputTokens: 1 },
    textLength: 3,
  })
  for (const dialect of families) {
    for (const body of [null, [], 'text', { usage: null }, { usage: { prompt_tokens: -1, seconds: 'x' } }]) {
      expect(dialect.readAnswer(body).usage).toBeNull()
    }
  }
})

const start = { model: 'm', exchangeId: '01990000-0000-7000-8000-000000000001', usageAdded: false }
const frameOf = (dialect: Dialect, data: string, more: Partial<typeof start> = {}) =>
  dialect.reader({ ...start, ...more }).frame({ event: null, data })

test('each stream tells its text, its usage, its end and its errors', () => {
  const usage = '"usage":{"input_tokens":1,"output_tokens":2}'
  expect(frameOf(speech, `{"type":"speech.audio.done",${usage}}`)).toMatchObject({
    terminal: true,
    usage: { inputTokens: 1, outputTokens: 2 },
  })
  expect(frameOf(transcriptions, '{"type":"transcript.text.delta","delta":"abc"}')).toMatchObject({
    terminal: false,
    textLength: 3,
  })
  expect(frameOf(transcriptions, `{"type":"transcript.text.done","text":"abc",${usage}}`)).toMatchObject({
    terminal: true,
    textLength: 0,
    usage: { outputTokens: 2 },
  })
  expect(frameOf(completions, '{"choices":[{"text":"abc"}]}')).toMatchObject({ terminal: false, textLength: 3 })
  for (const dialect of families) {
    expect(frameOf(dialect, '[DONE]').terminal).toBe(true)
    expect(frameOf(dialect, '{"error":{"code":"boom"}}')).toMatchObject({ terminal: true, error: 'boom' })
    for (const data of ['', 'not json', '7', 'null', '[]', '{}']) {
      expect(frameOf(dialect, data)).toMatchObject({ terminal: false, textLength: 0, error: null })
    }
  }
})

test('marks a frame that exists only because the gateway asked for usage', () => {
  const data = '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}'
  expect(frameOf(completions, data, { usageAdded: true })).toMatchObject({ ours: true, usage: { outputTokens: 2 } })
  expect(frameOf(completions, data)).toMatchObject({ ours: false, usage: { outputTokens: 2 } })
})

test('a stream that fails ends with the envelope, and completions with [DONE] too', () => {
  const failure = new Failure('upstream_provider_error')
  for (const dialect of families) {
    const text = new TextDecoder().decode(dialect.reader(start).errorFrames(failure, 'request-1'))
    expect(JSON.parse(text.split('\n\n')[0]?.slice('data: '.length) ?? '')).toMatchObject({
      error: { code: 'upstream_provider_error' },
      request_id: 'request-1',
    })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(
      ['embeddings', 'completions', 'moderations'].includes(dialect.family),
    )
  }
})

const recorded = join(import.meta.dir, '../../../test/fakes/recordings')

describe('recorded answers', () => {
  const read = (folder: string) =>
    readdirSync(join(recorded, folder)).map(
      (name) => [name, readFileSync(join(recorded, folder, name), 'utf8')] as const,
    )
  for (const [name, text] of read('openai-embedding')) {
    if (!name.endsWith('.json')) continue
    test(`${name} tells its usage`, () => {
      expect(embeddings.readAnswer(JSON.parse(text)).usage?.inputTokens).toBeGreaterThan(0)
    })
  }
  for (const [name, text] of read('openai-completion')) {
    if (!name.endsWith('.chunks.txt')) continue
    test(`${name} tells its text`, () => {
      const facts = text
        .trim()
        .split('\n')
        .map((data) => frameOf(completions, data))
      expect(facts.reduce((sum, { textLength }) => sum + textLength, 0)).toBeGreaterThan(0)
      expect(facts.every(({ error }) => error === null)).toBe(true)
    })
  }
})

test.each([
  [chat, 'max_tokens'],
  [chat, 'max_completion_tokens'],
  [responses, 'max_output_tokens'],
  [messages, 'max_tokens'],
  [completions, 'max_tokens'],
])('reads an output limit of 0 as no limit ($family, %p)', (dialect, member) => {
  expect(dialect.read({ model: 'm', prompt: 'a', input: 'a', messages: [], [member]: 0 }).outputLimit).toBeNull()
  expect(dialect.read({ model: 'm', prompt: 'a', input: 'a', messages: [], [member]: 1 }).outputLimit).toBe(1)
})
