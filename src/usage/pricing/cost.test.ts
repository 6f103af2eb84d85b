import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage } from '../../languages/dialect.ts'
import { nanoOf, Sum } from '../../providers/prices/price.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { listedModel } from '../../providers/prices/price-table.ts'
import { costOf } from './cost.ts'

const usage = (members: Partial<Usage>): Usage => ({
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
  ...members,
})
const listed = (kind: string, model: string) => {
  const found = listedModel(kind, null, model, Date.parse('2026-09-23T00:00:00Z'))
  if (found === null) throw new RangeError(`${model} is not in the table`)
  return found.price
}

test('charges cached tokens once, at the price of cached tokens', () => {
  const cost = costOf(
    listed('openai', 'gpt-4o'),
    'chat',
    usage({ inputTokens: 1000, outputTokens: 100, cachedInputTokens: 600 }),
  )
  // 400 at 2.50, 600 at 1.25 and 100 at 10 dollars a million.
  expect(cost).toBe(400 * 2500 + 600 * 1250 + 100 * 10_000)
})

test('charges cache writes by how long they are kept', () => {
  const price = listed('anthropic', 'claude-sonnet-4-5')
  const cost = costOf(price, 'messages', usage({ inputTokens: 1000, cacheWriteTokens: 500, cacheWriteHourTokens: 200 }))
  expect(cost).toBe(500 * 3000 + 300 * 3750 + 200 * 6000)
})

test('the actual input selects the tier, for the price of input and output alike', () => {
  const price = listed('anthropic', 'claude-sonnet-4-5')
  expect(costOf(price, 'messages', usage({ inputTokens: 200_000, outputTokens: 1 }))).toBe(200_000 * 3000 + 15_000)
  expect(costOf(price, 'messages', usage({ inputTokens: 200_001, outputTokens: 1 }))).toBe(200_001 * 6000 + 22_500)
})

test('charges a transcription by the length of its audio', () => {
  expect(costOf(listed('openai', 'whisper-1'), 'transcriptions', usage({ audioSeconds: 90 }))).toBe(9_000_000)
})

test('charges speech by characters if it has a price per character', () => {
  const price = compilePrice({ input_per_million: 0, output_per_million: 0, per_million_characters: 15 }, 'operator')
  expect(costOf(price, 'speech', usage({}), 1000)).toBe(15_000_000)
})

test('carries a price below one nano-dollar a token exactly and rounds up once', () => {
  const price = compilePrice({ input_per_million: 0.0001, output_per_million: 0.0001 }, 'operator')
  expect(costOf(price, 'chat', usage({ inputTokens: 3, outputTokens: 4 }))).toBe(1)
  expect(costOf(price, 'chat', usage({ inputTokens: 10_000, outputTokens: 1 }))).toBe(1001)
})

test('sums of nano-dollars agree with exact arithmetic', () => {
  const part = fc.tuple(fc.nat(10_000_000), fc.nat(600_000_000))
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
      const exact = parts.reduce((sum, [units, pico]) => sum + BigInt(units) * BigInt(pico), 0n)
      const sum = parts.reduce((sum, [units, pico]) => sum.add(units, pico), new Sum())
      const [units, pico] = parts[0] ?? [0, 0]
      expect(nanoOf(units, pico)).toBe(new Sum().add(units, pico).nano)
      return BigInt(sum.nano) === (exact + 999n) / 1000n
    }),
  )
})

const hundred = usage({ inputTokens: 100, outputTokens: 100 })

test.each([
  ['openai', 'gpt-4o', 'priority', 1.7],
  ['openai', 'gpt-5.5', 'priority', 2.5],
  ['openai', 'gpt-5', 'priority', 2],
  ['openai', 'gpt-5', 'flex', 0.5],
  ['openai', 'gpt-5', 'batch', 0.5],
  ['openai', 'gpt-5', 'ultrafast', 6],
  ['openai', 'gpt-5', 'a tier of tomorrow', 6],
  ['openai', 'gpt-5', 'default', 1],
  ['azure-openai', 'gpt-4.1', 'priority', 1.75],
  ['anthropic', 'claude-opus-4-8', 'fast', 2],
  ['anthropic', 'claude-opus-4-6', 'fast', 6],
  ['anthropic', 'claude-opus-4-6', 'priority', 1],
  ['anthropic', 'claude-opus-4-6', 'batch', 0.5],
  ['openai', 'ft:gpt-4o-2024-08-06', 'batch', 1],
  ['openai', 'gpt-3.5-turbo-1106', 'batch', 1],
  ['gemini', 'gemini-2.5-pro', 'batch', 0.5],
  ['openai', 'gpt-4o', 'PRIORITY', 1.7],
])('%s charges %s in the tier %s at this multiple of its list price: %d', (kind, model, serviceTier, multiple) => {
  const price = listed(kind, model)
  expect(costOf(price, 'chat', { ...hundred, serviceTier })).toBe(multiple * costOf(price, 'chat', hundred))
})

test.each([
  'gemini-2.5-pro',
  'gemini-2.5-flash',
  'gemini-2.5-flash-lite',
  'gemini-3-flash-preview',
  'gemini-3.1-pro-preview',
])('cached input of %s costs the same in the cheaper tiers, and more in the dearer tier', (model) => {
  const price = listed('gemini', model)
  const cached = usage({ inputTokens: 1000, cachedInputTokens: 1000 })
  const cost = (serviceTier: string) => costOf(price, 'chat', { ...cached, serviceTier })
  expect([cost('flex'), cost('batch'), cost('priority')]).toEqual([1, 1, 1.8].map((each) => each * cost('default')))
})

test('gives no discount on a price that an operator set', () => {
  const price = compilePrice({ input_per_million: 1, output_per_million: 2 }, 'operator')
  expect(costOf(price, 'chat', { ...hundred, serviceTier: 'flex' })).toBe(costOf(price, 'chat', hundred))
  expect(costOf(price, 'chat', { ...hundred, serviceTier: 'priority' })).toBe(2.5 * costOf(price, 'chat', hundred))
})

test('charges other than tokens cost the same in each tier', () => {
  const price = compilePrice({ input_per_million: 1, output_per_million: 1, per_thousand_tool_uses: 10 }, 'operator')
  expect(costOf(price, 'chat', usage({ toolUses: 3, serviceTier: 'priority' }))).toBe(3 * 10_000_000)
})

test('charges audio tokens at the price of audio', () => {
  const spoken = usage({ inputTokens: 100, outputTokens: 50, audioInputTokens: 80, audioOutputTokens: 40 })
  const cost = costOf(listed('openai', 'gpt-4o-audio-preview'), 'chat', spoken)
  expect(cost).toBe(20 * 2500 + 80 * 40_000 + 10 * 10_000 + 40 * 80_000)
})

test.each([
  ['bedrock', 'eu.amazon.nova-pro-v1:0', { input: 1.05, output: 4.2 }],
  ['bedrock', 'global.anthropic.claude-opus-4-6-v1', { input: 5, cacheWrite: 6.25, cacheWriteHour: 10 }],
  ['bedrock', 'anthropic.claude-3-opus-20240229-v1:0', { cachedInput: 1.5, cacheWrite: 18.75, cacheWriteHour: 30 }],
  ['azure-openai', 'text-embedding-3-large', { input: 0.143 }],
  ['gemini', 'gemini-3.8-flash-tts', { output: 9, audioOutput: 9 }],
  ['gemini', 'gemini-2.5-flash-image', { audioInput: 1 }],
  ['azure-openai', 'gpt-4o-realtime-preview-2024-10-01', { audioInput: 100, audioOutput: 200 }],
] as const)('%s: %s costs at least what other price lists say', (kind, model, dollars) => {
  const [tier] = listed(kind, model).tiers
  for (const [name, least] of Object.entries(dollars)) {
    expect(Number(Reflect.get(tier ?? {}, name))).toBeGreaterThanOrEqual(least * 1_000_000)
    expect(Number(Reflect.get(tier ?? {}, name))).toBeLessThan(least * 1_010_000)
  }
})

test('long input also costs more on Bedrock', () => {
  const price = listed('bedrock', 'global.anthropic.claude-sonnet-4-5-20250929-v1:0')
  expect(costOf(price, 'messages', usage({ inputTokens: 200_000 }))).toBe(200_000 * 3000)
  expect(costOf(price, 'messages', usage({ inputTokens: 200_001, outputTokens: 2 }))).toBe(200_001 * 6000 + 2 * 22_500)
})
