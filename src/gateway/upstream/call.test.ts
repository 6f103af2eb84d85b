import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { chat } from '../../languages/chat/dialect.ts'
import { neverCame } from './call.ts'

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
const broken = {
  reader: chat.reader({ model: 'm', exchangeId: 'x', usageAdded: false }),
  streaming: false,
  settled: null,
  cut: null,
  attempts: [{ ...attempt, reason: 'provider.interrupted' as const }],
  relayedText: 0,
  usage: null,
}

test('neverCame() holds for a stream that broke before its first frame', () => {
  expect(neverCame(broken)).toBe(true)
  expect(neverCame({ ...broken, attempts: [{ ...attempt, reason: 'provider.timeout' }] })).toBe(true)
})

test('neverCame() does not hold for an answer that was blocked, generated, charged, passed on or finished', () => {
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
    { relayedText: 3 },
    { usage },
    { streaming: true },
    { reader: null },
    { settled: Promise.resolve() },
    { cut: { reason: 'client.left' as const, failure: new Failure('client_left') } },
  ]
  expect(finals.map((final) => neverCame({ ...broken, ...final }))).toEqual(finals.map(() => false))
})
