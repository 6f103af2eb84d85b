import { afterEach, expect, test } from 'bun:test'
import { chat } from '../dialects/chat.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { beginExchange, type Exchange } from './exchange.ts'
import { createRunning } from './running.ts'
import { eventually } from './test-gateway.ts'
import { testSettings } from './test-lane.ts'

const running = createRunning(testSettings(), systemClock, () => undefined)
let exchange: Exchange
afterEach(() => running.remove(exchange))

/** An exchange that runs, and the limits that its connection was given, in seconds. */
function begin(change: Partial<Exchange>): number[] {
  const given: number[] = []
  exchange = beginExchange(
    {
      request: new Request('http://localhost/v1/chat/completions', { method: 'POST' }),
      connection: { timeout: (_request, seconds) => void given.push(seconds) },
      requestId: 'r',
      route: chat.route,
      family: chat.family,
      dialect: chat,
    },
    { clock: systemClock, newId },
  )
  Object.assign(exchange, change)
  running.add(exchange)
  return given
}

test('while a body comes its own limit holds, not the one that the server has for connections on which nothing does', async () => {
  const given = begin({ bodyUntil: systemClock.monotonic() + 60_000 })
  await eventually(() => given.includes(0))
  expect(exchange.cut).toBeNull()
})

test('a body that has not come by then ends its exchange', async () => {
  begin({ bodyUntil: systemClock.monotonic() - 1 })
  await eventually(() => exchange.cut !== null)
  expect(exchange.cut?.reason).toBe('request_timeout')
})
