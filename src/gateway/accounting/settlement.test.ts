import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { chat } from '../../languages/chat/dialect.ts'
import type { Usage } from '../../languages/dialect.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { PriceBook } from '../../providers/prices/price-book.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { simulator } from '../../providers/simulator/simulator.ts'
import { maxAmount } from '../../usage/lease/lease.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import type { Reservation } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import { type Attempt, beginExchange, type Exchange, type ResolvedModel } from '../exchange.ts'
import { testMemory, testProvider } from '../testing/worker.ts'
import { bookLimits, coversAttempt, spentOf } from './settlement.ts'

/** One dollar a million tokens: 1000 nano-dollars a token. */
const price = compilePrice({ input_per_million: 1, output_per_million: 1 }, 'operator')
const model: ResolvedModel = {
  id: 'm',
  aliases: [],
  upstreamModel: 'up',
  provider: testProvider(),
  kind: simulator,
  listed: null,
}
const usage = (inputTokens: number, outputTokens: number): Usage => ({
  inputTokens,
  outputTokens,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
})
const attempt = (reported: Usage | null): Attempt => ({
  eventId: newId(),
  spanId: null,
  provider: 'upstream',
  model: 'up',
  startedAt: 0,
  startedMonotonic: 0,
  firstByteMs: 1,
  latencyMs: 1,
  status: 200,
  reason: 'provider.interrupted',
  usage: reported,
})
const gateway: Pick<Gateway, 'prices' | 'clock'> = { prices: new PriceBook(), clock: systemClock }

const outcome = (): Event => ({
  event_id: newId(),
  event_type: 'gateway.request.outcome',
  request_id: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  verdict: 'allow',
  reason_code: 'ok',
  config_version: 1,
  event_attribution: noAttribution,
})

function opened(usageLimits: InMemoryLimits, want: number): Exchange {
  const request = new Request('http://localhost/')
  const from = { request, connection: null, requestId: 'r', route: 'POST /x', family: 'chat', dialect: chat }
  const exchange = beginExchange(from, { clock: systemClock, newId, memory: testMemory() })
  const held = usageLimits.reserve([{ account: 'token/t/money', want, min: want }], exchange.call.abort.signal)
  return Object.assign(exchange, {
    model,
    paths: [model],
    priced: [{ model, terms: { price, contextWindow: null, maxOutputTokens: null }, bound: null }],
    facts: chat.read({ model: 'm', messages: [] }),
    reservation: held as Reservation,
    opened: true,
  })
}

test('books every billed attempt in addition to the last one, and reserves it before the next attempt', () => {
  const usageLimits = new InMemoryLimits({ 'token/t/money': 160_000 })
  const exchange = opened(usageLimits, 100_000)
  exchange.attempts.push(attempt(usage(40, 10)))
  expect(coversAttempt(exchange)).toBe(true)
  expect(usageLimits.balances.get('token/t/money')).toBe(10_000)
  expect(coversAttempt(exchange)).toBe(false)
  exchange.attempts.push(attempt(null))
  exchange.call.usage = usage(40, 20)
  const spent = spentOf(exchange, gateway, 'ok')
  expect(spent).toMatchObject({ cost: 110_000, estimated: false })
  const end = { details: {}, members: outcome() }
  bookLimits(exchange, end, spent)
  expect(end.members.settlements).toEqual([{ account: 'token/t/money', amount: 110_000 }])
  expect(end.details).toEqual({})
  expect(usageLimits.balances.get('token/t/money')).toBe(50_000)
})

test('books a cost once on a budget that was reserved in two of its windows', () => {
  const exchange = opened(new InMemoryLimits({}), 100_000)
  const held = [
    { account: 'budget/b@2026-01-01', amount: 30_000 },
    { account: 'budget/b@2026-01-02', amount: 70_000 },
    { account: 'token/t/requests', amount: 1 },
  ]
  exchange.reservation = { held, extend: () => false, book: (used) => used, release() {} }
  const end = { details: {}, members: outcome() }
  bookLimits(exchange, end, { usage: usage(1, 1), estimated: false, cost: 50_000, source: null })
  expect(end.members.settlements?.map(({ amount }) => amount)).toEqual([30_000, 20_000, 1])
})

test('limits an estimate to the reserved amount', () => {
  const exchange = opened(new InMemoryLimits({ 'token/t/money': 5000 }), 5000)
  exchange.attempts.push(attempt(null))
  exchange.relayedCharacters = 4000
  expect(spentOf(exchange, gateway, 'client.left')).toMatchObject({ cost: 5000, estimated: true })
})

test('estimates the output from its text when the provider reports only the input', () => {
  const exchange = opened(new InMemoryLimits({ 'token/t/money': 5_000_000 }), 5_000_000)
  exchange.attempts.push(attempt(null))
  exchange.call.usage = { ...usage(1000, 0), outputTokens: null }
  exchange.relayedCharacters = 400
  expect(spentOf(exchange, gateway, 'client.left')).toMatchObject({
    cost: 1_100_000,
    estimated: true,
    usage: { inputTokens: 1000, outputTokens: 100 },
  })
})

test('notes a charge above the bound also when a part of the report cannot be used', () => {
  const exchange = opened(new InMemoryLimits({ 'token/t/money': 5_000_000 }), 100_000)
  exchange.attempts.push(attempt(null))
  for (const path of exchange.priced) path.bound = { listed: 100_000, excess: 0 }
  exchange.call.usage = { ...usage(0, 1000), inputTokens: null }
  const spent = spentOf(exchange, gateway, 'ok')
  expect(spent).toMatchObject({ estimated: true, cost: 1_000_000 })
  const end = { details: {}, members: outcome() }
  bookLimits(exchange, end, spent)
  expect(end.details).toMatchObject({ bound_exceeded: {} })
})

test('books nothing for a request that was never sent', () => {
  const exchange = opened(new InMemoryLimits({ 'token/t/money': 5000 }), 5000)
  expect(spentOf(exchange, gateway, 'client.left')).toBeNull()
})

test('caps an absurd cost at the same maximum in the event and on the account', () => {
  const exchange = opened(new InMemoryLimits({ 'token/t/money': 1_000_000 }), 1000)
  exchange.attempts.push(attempt(null))
  exchange.call.usage = usage(1e15, 1e15)
  const spent = spentOf(exchange, gateway, 'ok')
  expect(spent?.cost).toBe(maxAmount)
  const end = { details: {}, members: outcome() }
  bookLimits(exchange, end, spent)
  expect(end.members.settlements).toEqual([{ account: 'token/t/money', amount: maxAmount }])
})
