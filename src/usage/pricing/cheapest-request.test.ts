import { expect, test } from 'bun:test'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { cheapestRequest, minCost, type Offer, type Spender } from './cheapest-request.ts'

const [cheap, dear] = [{ name: 'cheap' }, { name: 'dear' }]
const offer: Offer = {
  listed: new Map(
    [
      { id: 'small', provider: cheap, cost: 2 },
      { id: 'large', provider: dear, cost: 70 },
      { id: 'unpriced', provider: cheap, cost: null },
    ].map((model) => [model.id, model]),
  ),
  open: [],
}
const anyone: Spender = { provider: null, modelFilter: null, accessPolicies: [] }
const policy = { id: 'p', requestsPerMinute: null, tokensPerMinute: null, models: null, providers: null }

test('the cheapest request is one input and one output token, rounded up once, plus the fee per request', () => {
  const price = { input_per_million: 0.15, output_per_million: 0.6 }
  expect(minCost(compilePrice(price, 'operator'))).toBe(750)
  expect(minCost(compilePrice({ ...price, output_per_million: 60, per_thousand_requests: 1 }, ''))).toBe(1_060_150)
  expect(minCost(compilePrice({ ...price, audio_per_hour: 0.36 }, ''))).toBe(1000)
  expect(minCost(compilePrice({ ...price, per_million_characters: 15 }, ''))).toBe(15_000)
  const image = { input_per_million: 0, output_per_million: 0, per_image: 0.04 }
  expect(minCost(compilePrice(image, ''))).toBe(40_000_000)
})

test('the cheapest request uses only models that the token, its provider and its access policies allow', () => {
  expect(cheapestRequest(anyone, offer)).toBe(2)
  expect(cheapestRequest({ ...anyone, modelFilter: ['l*', 'unpriced'] }, offer)).toBe(70)
  expect(cheapestRequest({ ...anyone, provider: 'dear' }, offer)).toBe(70)
  expect(cheapestRequest({ ...anyone, accessPolicies: [policy, { ...policy, providers: ['dear'] }] }, offer)).toBe(70)
  expect(cheapestRequest({ ...anyone, accessPolicies: [{ ...policy, models: ['large'] }] }, offer)).toBe(70)
})

test('there is no cheapest request when the token may use no priced model', () => {
  expect(cheapestRequest({ ...anyone, modelFilter: ['unpriced'] }, offer)).toBeNull()
})

test('for a provider that takes any model name the cheapest is the lowest price of all, unless names are listed', () => {
  const open = { ...offer, open: [{ name: 'dear', cost: (model: string) => (model === 'tiny' ? 1 : null), least: 1 }] }
  expect(cheapestRequest(anyone, open)).toBe(1)
  expect(cheapestRequest({ ...anyone, modelFilter: ['large', 'tiny'] }, open)).toBe(1)
  expect(cheapestRequest({ ...anyone, modelFilter: ['large', 'nobody'] }, open)).toBe(70)
  expect(cheapestRequest({ ...anyone, provider: 'cheap' }, open)).toBe(2)
  const unpriced = { ...offer, open: [{ name: 'dear', cost: () => null, least: null }] }
  expect(cheapestRequest({ ...anyone, provider: 'dear' }, unpriced)).toBe(70)
})

test('leaves free models out of the cheapest request', () => {
  const free = { id: 'free', provider: cheap, cost: 0 }
  const withFree = { ...offer, listed: new Map([...offer.listed, ['free', free]]) }
  expect(cheapestRequest(anyone, withFree)).toBe(2)
  expect(cheapestRequest({ ...anyone, modelFilter: ['free'] }, withFree)).toBeNull()
})
