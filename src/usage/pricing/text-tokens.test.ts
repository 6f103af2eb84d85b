/** How the text of a request is counted, with the tokenizers themselves. */
import { describe, expect, test } from 'bun:test'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { type CountText, type Encoding, encodingOf, tokensOfBody } from './text-tokens.ts'

/** OpenAI's example of how to count tokens, with what its API reported for it: 124 by o200k_base, 129 by cl100k_base. */
const example = [
  [undefined, 'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.'],
  ['example_user', 'New synergies will help drive top-line growth.'],
  ['example_assistant', 'Things working well together will increase revenue.'],
  [
    'example_user',
    "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
  ],
  ['example_assistant', "Let's talk later when we're less busy about how to do better."],
  [undefined, "This late pivot means we don't have time to boil the ocean for the client deliverable."],
].map(([name, content], at) => ({ role: at === 5 ? 'user' : 'system', content, ...(name !== undefined && { name }) }))

/** OpenAI's rule: three tokens a message, one more for its name, and three for the answer's beginning. */
const reported = (countText: CountText) =>
  example.reduce((sum, message) => {
    const texts = Object.values(message).map((text) => countText(text ?? ''))
    return texts.reduce((most, each) => most + each, sum + 3 + ('name' in message ? 1 : 0))
  }, 3)

const counters: readonly [Encoding, CountText, number][] = [
  ['o200k_base', countO200k, 124],
  ['cl100k_base', countCl100k, 129],
]

for (const [encoding, countText, provider] of counters) {
  describe(encoding, () => {
    test('counts the same tokens as the provider reports', () => {
      expect(reported(countText)).toBe(provider)
      expect(countText('2 + 2 = 4')).toBe(7)
      expect(countText('お誕生日おめでとう')).toBe(encoding === 'o200k_base' ? 8 : 9)
    })

    test('counts no fewer tokens of a body than the provider reports, and fewer than its bytes', () => {
      const body = { model: 'gpt-4o', messages: example }
      const counted = tokensOfBody(body, countText) ?? 0
      expect(counted).toBeGreaterThanOrEqual(provider)
      expect(counted).toBeLessThan(JSON.stringify(body).length / 2)
    })

    test('counts no fewer tokens for a text in pieces than for the whole text', () => {
      const texts = [
        'The quick brown fox jumps over the lazy dog. '.repeat(100),
        'Γειά σου Κόσμε 你好世界 🧑‍🚀 '.repeat(80),
        Array.from({ length: 900 }, (_, at) => at * 7919).join(','),
        '{\n    "name": "value",\n\n\t\t"list": [1, 2.5e10]\n}\n'.repeat(60),
        '\u{1F600}'.repeat(700),
        `${'x'.repeat(511)}\u{1F600}${'y'.repeat(600)}`,
      ]
      for (const text of texts) expect(tokensOfBody({ input: text }, countText)).toBeGreaterThan(countText(text))
    })
  })
}

test('counts no fewer tokens for a tool than for its JSON', () => {
  const schema = {
    type: 'object',
    properties: { place: { type: 'string', enum: ['Oslo', 'Rome'] } },
    required: ['place'],
  }
  const tools = [
    { type: 'function', function: { name: 'weather', description: 'Tells the weather', parameters: schema } },
  ]
  expect(tokensOfBody({ tools }, countO200k)).toBeGreaterThanOrEqual(countO200k(JSON.stringify(tools)))
})

test('counts a long run without a space within a second', () => {
  const started = performance.now()
  expect(tokensOfBody({ input: 'a'.repeat(100_000) }, countO200k)).toBeGreaterThan(12_000)
  expect(performance.now() - started).toBeLessThan(5000)
})

test('gives no count for a body that holds more than text', () => {
  const parts = [
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } },
    { type: 'reasoning', encrypted_content: 'AAAA' },
    { type: 'invented_later' },
  ]
  for (const part of parts) {
    expect(tokensOfBody({ messages: [{ role: 'user', content: [part] }] }, () => 1)).toBeNull()
    expect(tokensOfBody({ input: [part] }, () => 1)).toBeNull()
  }
  const text = { type: 'text', text: 'hello' }
  expect(tokensOfBody({ messages: [{ role: 'user', content: [text] }] }, () => 1)).not.toBeNull()
  expect(tokensOfBody('text', () => 1)).toBeNull()
})

test('counts only for models with a public tokenizer', () => {
  const expected: readonly [string, string, Encoding | null][] = [
    ['openai', 'gpt-4o-mini-2024-07-18', 'o200k_base'],
    ['openai', 'gpt-4.1', 'o200k_base'],
    ['openai', 'gpt-5.2-codex', 'o200k_base'],
    ['openai', 'o3', 'o200k_base'],
    ['openai', 'ft:gpt-4o-mini:company::id', 'o200k_base'],
    ['openai', 'gpt-4-turbo', 'cl100k_base'],
    ['openai', 'gpt-3.5-turbo', 'cl100k_base'],
    ['openai', 'text-embedding-3-small', 'cl100k_base'],
    ['openai', 'gpt-4o-audio-preview', null],
    ['openai', 'gpt-4o-search-preview', null],
    ['openai', 'gpt-40', null],
    ['openai', 'gpt-6', null],
    ['openai', 'llama-3', null],
    ['azure-openai', 'gpt-4o', null],
    ['anthropic', 'claude-sonnet-4-5', null],
    ['gemini', 'gemini-3-pro', null],
  ]
  for (const [kind, model, encoding] of expected) expect([model, encodingOf(kind, model)]).toEqual([model, encoding])
})
