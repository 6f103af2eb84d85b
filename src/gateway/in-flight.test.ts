import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../test/support/eventually.ts'
import { chat } from '../languages/chat/dialect.ts'
import { routeOf } from '../languages/families.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { beginExchange, type Exchange } from './exchange.ts'
import { createInFlight } from './in-flight.ts'
import { testListener } from './testing/gateway.ts'
import { testMemory, testSettings } from './testing/worker.ts'

const running = createInFlight(testSettings(), systemClock, () => undefined)
let exchange: Exchange
afterEach(() => running.remove(exchange))

/** An exchange that runs, and the limits that its connection was given, in seconds. */
function begin(change: Partial<Exchange>): number[] {
  const { limits, listener } = testListener()
  exchange = beginExchange(
    {
      request: new Request('http://localhost/v1/chat/completions', { method: 'POST' }),
      connection: listener,
      requestId: 'r',
      route: routeOf('chat'),
      family: chat.family,
      dialect: chat,
    },
    { clock: systemClock, newId, memory: testMemory() },
  )
  Object.assign(exchange, change)
  running.add(exchange)
  return limits
}

test('applies the body timeout, not the idle timeout of the server, while a body arrives', async () => {
  const limits = begin({ bodyDeadline: systemClock.monotonic() + 60_000 })
  await eventually(() => limits.includes(0))
  expect(exchange.cut).toBeNull()
})

test('restores the idle timeout after the answer', async () => {
  const limits = begin({ bodyDeadline: systemClock.monotonic() + 60_000 })
  await eventually(() => limits.includes(0))
  running.remove(exchange)
  expect(limits.at(-1)).toBe(120)
  expect(begin({})).toEqual([])
  running.remove(exchange)
  expect(limits.filter((limit) => limit === 120)).toHaveLength(1)
})

test('ends the exchange when the body does not arrive in time', async () => {
  begin({ bodyDeadline: systemClock.monotonic() - 1 })
  await eventually(() => exchange.cut !== null)
  expect(exchange.cut?.reason).toBe('request_timeout')
})

test.each([
  ['has ended', (answer: PromiseWithResolvers<void>) => answer.resolve()],
  ['has broken off', (answer: PromiseWithResolvers<void>) => answer.reject(new Error('It broke off'))],
])('a drain waits until an answer of which no exchange runs %s', async (_, end) => {
  const answer = Promise.withResolvers<void>()
  running.waitFor(answer.promise)
  let drained = false
  const draining = running.drain(60_000).then(() => {
    drained = true
  })
  await Bun.sleep(0)
  expect(drained).toBe(false)
  end(answer)
  await draining
})
