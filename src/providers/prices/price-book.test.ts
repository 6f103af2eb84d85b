import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { PriceBook, type PricedModel } from './price-book.ts'
import { compilePrice } from './price-record.ts'
import { tableVersion } from './price-table.ts'

const now = Date.parse('2026-10-01T00:00:00Z')
const openai = { id: 'p', kind: 'openai', baseUrl: null }
const model = (upstreamModel: string, members: Partial<PricedModel> = {}): PricedModel => ({
  upstreamModel,
  provider: openai,
  listed: null,
  ...members,
})
const price = (input: number) => compilePrice({ input_per_million: input, output_per_million: 1 }, 'operator')

test('the table is named by the version that is installed', async () => {
  const file = join(import.meta.dir, '../../../node_modules/@pydantic/genai-prices/package.json')
  expect((await Bun.file(file).json()).version).toBe(tableVersion)
})

test("the operator's price comes first, then the table's, then the provider's", async () => {
  const prices = new PriceBook()
  await prices.load()
  const provider = { ...openai, defaultPrice: price(9) }
  const inputs = [
    model('gpt-4o-mini', { provider, listed: { price: price(7), maxOutputTokens: 5 } }),
    model('gpt-4o-mini', { provider }),
    model('nobody-knows-it', { provider }),
    model('nobody-knows-it'),
  ].map((each) => prices.terms(each, now).price?.tiers[0]?.input ?? null)
  expect(inputs).toEqual([7_000_000, 150_000, 9_000_000, null])
})

test("finds a provider's prices by its address, and for an unknown address by its kind", async () => {
  const prices = new PriceBook()
  await prices.load()
  const groq = { ...openai, id: 'g', baseUrl: 'https://api.groq.com/openai/v1' }
  expect(prices.terms(model('llama-3.3-70b-versatile', { provider: groq }), now).price).not.toBeNull()
  const own = { ...openai, id: 'o', baseUrl: 'http://127.0.0.1:1/v1' }
  expect(prices.terms(model('gpt-4o-mini', { provider: own }), now)).toMatchObject({ contextWindow: 128_000 })
})

test('the simulator is known without the table', () => {
  const simulated = model('echo', { provider: { id: 's', kind: 'simulator', baseUrl: null } })
  expect(new PriceBook().knows(simulated)).toBe(true)
  expect(new PriceBook().knows(model('gpt-4o-mini'))).toBe(false)
})
