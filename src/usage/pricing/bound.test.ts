import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import type { RequestFacts, Usage } from '../../languages/dialect.ts'
import type { Family } from '../../languages/families.ts'
import type { Price } from '../../providers/prices/price.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { affordableOutput, type BoundedModel, boundedCost, boundOf } from './bound.ts'
import { costOf } from './cost.ts'

const plain = compilePrice({ input_per_million: 1, output_per_million: 2 }, 'operator')
const facts = (members: Partial<RequestFacts>): RequestFacts => ({
  model: 'm',
  stream: false,
  inputEstimate: 1,
  outputLimit: 100,
  choices: 1,
  beyondBody: false,
  unbounded: null,
  sessionId: null,
  ...members,
})
const bound = (
  body: Record<string, unknown>,
  members: Partial<RequestFacts> = {},
  model: Partial<BoundedModel> = {},
  family: Family = 'chat',
) =>
  boundOf(
    { family, facts: facts(members), parsed: body, body: new TextEncoder().encode(JSON.stringify(body)) },
    { price: plain, contextWindow: 1000, maxOutputTokens: null, ...model },
  )
const hello = { messages: [{ role: 'user', content: 'hello' }] }
function refusal(work: () => unknown) {
  try {
    work()
  } catch (thrown) {
    if (thrown instanceof Failure) return { code: thrown.code, param: thrown.param }
  }
  throw new Error('It was not refused')
}

test('bounds input by the bytes of the body and output by the limit times the number of choices', () => {
  const one = bound(hello)
  const bytes = JSON.stringify(hello).length
  expect(boundedCost(one, one.most)).toBe((bytes + 64 + 16) * 1000 + 100 * 2000)
  const three = bound(hello, { choices: 3 })
  expect(boundedCost(three, three.most)).toBe((bytes + 64 + 16) * 1000 + 300 * 2000)
})

test('bounds a long text by the context window', () => {
  const long = bound({ messages: [{ role: 'user', content: 'x'.repeat(5000) }] })
  expect(long.fixed).toBe(1000 * 1000)
})

test('bounds input that the body does not hold by the context window, once more for each use of a hosted tool', () => {
  expect(bound(hello, { beyondBody: true }).fixed).toBe(1_000_000)
  const fee = compilePrice({ input_per_million: 1, output_per_million: 2, per_thousand_tool_uses: 10 }, 'operator')
  expect(bound(hello, { toolUses: 2 }, { price: fee }).fixed).toBe(3_000_000 + 2 * 10_000_000)
})

test('refuses a request without a bound and names the field', () => {
  expect(refusal(() => bound(hello, { unbounded: 'tools.0.type' }))).toEqual({
    code: 'tokens.cost_unbounded',
    param: 'tools.0.type',
  })
  expect(refusal(() => bound(hello, { toolUses: 1 }, { contextWindow: null }))).toEqual({
    code: 'tokens.cost_unbounded',
    param: 'tools',
  })
  expect(refusal(() => bound(hello, { outputLimit: null }, { contextWindow: null }))).toEqual({
    code: 'tokens.cost_unbounded',
    param: 'max_tokens',
  })
  expect(refusal(() => bound(hello, {}, { price: null }))).toEqual({ code: 'tokens.model_unpriced', param: 'model' })
})

test("bounds output by the smallest of the caller's limit, the catalog and the window", () => {
  const most = (outputLimit: number | null, maxOutputTokens: number | null, contextWindow: number | null) =>
    bound(hello, { outputLimit }, { maxOutputTokens, contextWindow }).most
  expect([most(null, 40, 1000), most(30, 40, 1000), most(90, 40, null), most(null, null, 1000)]).toEqual([
    40, 30, 40, 1000,
  ])
  expect(refusal(() => most(null, null, null))).toEqual({ code: 'tokens.cost_unbounded', param: 'max_tokens' })
  const unbounded = () => bound(hello, { outputLimit: null }, { contextWindow: null }, 'responses')
  expect(refusal(unbounded)).toEqual({ code: 'tokens.cost_unbounded', param: 'max_output_tokens' })
})

test('prices the whole request by the dearest tier that its input can reach', () => {
  const price = compilePrice(
    {
      input_per_million: 1,
      output_per_million: 2,
      tiers: [{ from_input_tokens: 500, input_per_million: 4, output_per_million: 8 }],
    },
    'operator',
  )
  const long = bound({ messages: [{ role: 'user', content: 'x'.repeat(600) }] }, { outputLimit: 10 }, { price })
  expect(long.output).toBe(8_000_000)
  expect(bound(hello, { outputLimit: 10 }, { price }).output).toBe(2_000_000)
})

test('embeddings cost no output, and their inputs are not bounded by one context window', () => {
  const many = bound(
    { input: Array.from({ length: 10 }, () => 'x'.repeat(500)) },
    { outputLimit: null },
    {},
    'embeddings',
  )
  expect(many.most).toBe(0)
  expect(many.fixed).toBeGreaterThan(5_000_000)
})

test('bounds an audio upload by the longest time that its bytes can play', () => {
  const hour = compilePrice({ input_per_million: 0, output_per_million: 0, audio_per_hour: 0.36 }, 'operator')
  const upload = { family: 'transcriptions' as const, facts: facts({}), parsed: null, body: new Uint8Array(6000) }
  // 6000 bytes are at most 60 s.
  expect(boundOf(upload, { price: hour, contextWindow: null, maxOutputTokens: null }).fixed).toBe(6_000_000)
})

test.each([
  ['an hour of cache', '"ttl":"1h"'],
  ['an hour of cache with an escape', '"ttl":"1\\u0068"'],
  ['an hour of cache with another', '"ttl":"\\u0031h"'],
  ['sound', '"type":"input_audio"'],
  ['sound with an escape', '"type":"input_audi\\u006F"'],
])('bounds input sent as %s at its higher rate', (_what, member) => {
  const price = compilePrice(
    {
      ...{ input_per_million: 1, output_per_million: 2, cache_write_per_million: 1.25 },
      ...(member.includes('ttl') ? { cache_write_hour_per_million: 8 } : { audio_input_per_million: 8 }),
    },
    'operator',
  )
  const fixedOf = (text: string) =>
    boundOf(
      { family: 'chat', facts: facts({}), parsed: JSON.parse(text), body: new TextEncoder().encode(text) },
      { price, contextWindow: 10, maxOutputTokens: null },
    ).fixed
  expect(fixedOf(`{${member}}`)).toBe(80_000)
  expect(fixedOf(JSON.stringify({ content: 'Größe "\u0001"' }))).toBe(12_500)
})

test('a lowered output limit never costs more than the grant, and one token more would', () => {
  const rate = fc.integer({ min: 1, max: 500_000 }).map((value) => value / 1000)
  fc.assert(
    fc.property(rate, rate, fc.nat(5_000_000), fc.integer({ min: 1, max: 4 }), (input, output, granted, choices) => {
      const price = compilePrice({ input_per_million: input, output_per_million: output }, 'operator')
      const found = bound(hello, { choices, outputLimit: 5000 }, { price, contextWindow: 10_000 })
      const tokens = affordableOutput(found, granted)
      if (granted >= found.fixed) expect(boundedCost(found, tokens)).toBeLessThanOrEqual(granted)
      if (tokens < found.most) expect(boundedCost(found, tokens + 1)).toBeGreaterThan(granted)
    }),
  )
})

test('no usage within the limits costs more than the bound', () => {
  const rate = fc.integer({ min: 0, max: 100_000 }).map((value) => value / 1000)
  const prices = fc
    .record({ input: rate, output: rate, cached: rate, write: rate, tierInput: rate, tierOutput: rate })
    .map(
      (rates): Price =>
        compilePrice(
          {
            input_per_million: rates.input,
            output_per_million: rates.output,
            cached_input_per_million: rates.cached,
            cache_write_per_million: rates.write,
            tiers: [
              { from_input_tokens: 100, input_per_million: rates.tierInput, output_per_million: rates.tierOutput },
            ],
          },
          'operator',
        ),
    )
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(prices, fc.nat(400), share, share, share, share, (price, length, used, cached, written, produced) => {
      const body = { messages: [{ role: 'user', content: 'x'.repeat(length) }] }
      const found = bound(body, { choices: 2 }, { price })
      const most = Math.min(1000, JSON.stringify(body).length + 80)
      const inputTokens = Math.floor(most * used)
      const cachedInputTokens = Math.floor(inputTokens * cached)
      const usage: Usage = {
        inputTokens,
        cachedInputTokens,
        cacheWriteTokens: Math.floor((inputTokens - cachedInputTokens) * written),
        outputTokens: Math.floor(200 * produced),
        reasoningTokens: null,
      }
      expect(costOf(price, 'chat', usage)).toBeLessThanOrEqual(boundedCost(found, found.most))
    }),
  )
})

test('bounds a service tier at its own price, without counting on a discount', () => {
  const standard = bound(hello)
  const asked = (name: string) => bound(hello, { serviceTier: { name, param: 'service_tier' } })
  expect(asked('priority')).toMatchObject({ fixed: 2.5 * standard.fixed, output: 2.5 * standard.output })
  expect(asked('ultrafast')).toMatchObject({ fixed: 6 * standard.fixed, output: 6 * standard.output })
  for (const name of ['flex', 'batch', 'auto', 'default']) expect(asked(name)).toEqual(standard)
})

test('refuses a service tier without a known price and names the field', () => {
  expect(refusal(() => bound(hello, { serviceTier: { name: 'tomorrow', param: 'service_tier' } }))).toEqual({
    code: 'tokens.cost_unbounded',
    param: 'service_tier',
  })
  expect(refusal(() => bound(hello, { serviceTier: { name: 'faster', param: 'speed' } }))).toMatchObject({
    param: 'speed',
  })
})
