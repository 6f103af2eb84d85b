import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { chat } from '../../languages/chat/dialect.ts'
import { hasNoOutput } from './call.ts'

const attempt = {
  eventId: 'e',
  spanId: null,
  provider: 'p',
  model: 'm',
  startedAt: 0,
  startedMonotonic: 0,
  firstByteMs: 1,
  latencyMs: 2,
  status: 200,
}
const call = { reader: chat.reader({ model: 'm', exchangeId: 'x', usageAdded: false }), usage: null }
const broken = {
  call,
  streaming: false,
  outcomeCommitted: null,
  cut: null,
  attempts: [{ ...attempt, reason: 'provider.interrupted' as const }],
  relayedCharacters: 0,
}

test('hasNoOutput() holds for a stream that broke before its first frame', () => {
  expect(hasNoOutput(broken)).toBe(true)
  expect(hasNoOutput({ ...broken, attempts: [{ ...attempt, reason: 'provider.timeout' }] })).toBe(true)
})

test('hasNoOutput() does not hold for an answer that was blocked, generated, charged, passed on or finished', () => {
  const usage = {
    inputTokens: 1,
    outputTokens: 1,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  }
  const finals = [
    { attempts: [{ ...attempt, reason: 'ok' as const }] },
    { attempts: [{ ...attempt, reason: 'provider.invalid_answer' as const }] },
    { relayedCharacters: 3 },
    { call: { ...call, usage } },
    { streaming: true },
    { call: { ...call, reader: null } },
    { outcomeCommitted: Promise.resolve() },
    { cut: { reason: 'client.left' as const, failure: new Failure('client_left') } },
  ]
  expect(finals.map((final) => hasNoOutput({ ...broken, ...final }))).toEqual(finals.map(() => false))
})
