import { expect, test } from 'bun:test'
import { chat } from '../../languages/chat/dialect.ts'
import type { Usage } from '../../languages/dialect.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { beginExchange, type Exchange } from '../exchange.ts'
import type { Call } from '../provider-call.ts'
import { testMemory } from '../testing/worker.ts'
import { completedUsage } from './usage.ts'

const reported = (told: Partial<Usage>): Usage => ({
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
  ...told,
})

/** A question of 8 characters, which count as 2 tokens. */
type State = Partial<Pick<Exchange, 'relayedCharacters'> & Pick<Call, 'reader' | 'charactersSinceUsage'>>

function exchangeWith({ relayedCharacters = 0, ...answer }: State): Exchange {
  const request = new Request('http://localhost/')
  const from = { request, connection: null, requestId: 'r', route: 'POST /x', family: 'chat', dialect: chat }
  const facts = chat.read({ model: 'm', messages: [{ role: 'user', content: '12345678' }] })
  const exchange = beginExchange(from, { clock: systemClock, newId, memory: testMemory() })
  Object.assign(exchange.call, answer)
  return Object.assign(exchange, { facts, relayedCharacters })
}

const counts = (state: State, told: Partial<Usage>) => {
  const { usage, estimated } = completedUsage(exchangeWith(state), reported(told))
  return [usage.inputTokens, usage.outputTokens, estimated]
}

const reader = chat.reader({ model: 'm', exchangeId: newId(), usageAdded: false })

test('raises reported usage to the tokens of the text that followed it, and flags the estimate', () => {
  const told = { inputTokens: 3, outputTokens: 1 }
  expect(counts({ reader, relayedCharacters: 400, charactersSinceUsage: 396 }, told)).toEqual([3, 100, true])
  expect(counts({ reader, relayedCharacters: 400, charactersSinceUsage: 4 }, { ...told, outputTokens: 500 })).toEqual([
    3,
    500,
    true,
  ])
  expect(counts({ reader, relayedCharacters: 400, charactersSinceUsage: 0 }, told)).toEqual([3, 1, false])
})

test('counts the produced output when usage was not reported yet, and flags the estimate', () => {
  expect(counts({ reader, relayedCharacters: 40, charactersSinceUsage: 40 }, { inputTokens: 3 })).toEqual([3, 10, true])
  expect(counts({ reader }, { inputTokens: 3 })).toEqual([3, 0, true])
})

test('ignores a usage report of zeros when the answer has text', () => {
  expect(counts({ relayedCharacters: 40 }, { inputTokens: 0, outputTokens: 0 })).toEqual([2, 10, true])
  expect(counts({ relayedCharacters: 40 }, { inputTokens: 7, outputTokens: 0 })).toEqual([7, 10, true])
  expect(counts({ relayedCharacters: 0 }, { inputTokens: 7, outputTokens: 0 })).toEqual([7, 0, false])
  expect(counts({ relayedCharacters: 40 }, { outputTokens: 5 })).toEqual([2, 5, true])
})

test('limits each part of the input to the whole input', () => {
  const told = reported({ inputTokens: 10, outputTokens: 1, cachedInputTokens: 600, cacheWriteTokens: 4 })
  const { usage, estimated } = completedUsage(exchangeWith({ relayedCharacters: 4 }), told)
  expect([usage.cachedInputTokens, usage.cacheWriteTokens, estimated]).toEqual([10, 0, false])
})
