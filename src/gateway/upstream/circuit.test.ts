import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Circuits } from './circuit.ts'

const path = { provider: { id: 'p' }, upstreamModel: 'm' }
const other = { provider: { id: 'p' }, upstreamModel: 'n' }
const circuits = (failures = 3) => new Circuits({ circuit_failures: failures, circuit_open_seconds: 10 })

test('opens after the configured number of consecutive failures, for its path alone', () => {
  const some = circuits()
  some.failed(path, 0)
  some.failed(path, 0)
  expect(some.allows(path, 0)).toBe(true)
  some.failed(path, 0)
  expect(some.allows(path, 9999)).toBe(false)
  expect(some.allows(other, 0)).toBe(true)
})

test('resets the failure count on an answer', () => {
  const some = circuits(2)
  some.failed(path, 0)
  some.answered(path)
  some.failed(path, 0)
  expect(some.allows(path, 0)).toBe(true)
})

test('lets one request try when half-open and follows its result', () => {
  const some = circuits(1)
  some.failed(path, 0)
  expect([some.allows(path, 10_000), some.allows(path, 10_000)]).toEqual([true, false])
  some.failed(path, 10_500)
  expect([some.allows(path, 20_000), some.allows(path, 20_500), some.allows(path, 20_500)]).toEqual([
    false,
    true,
    false,
  ])
  some.answered(path)
  expect([some.allows(path, 20_501), some.allows(path, 20_501)]).toEqual([true, true])
})

test('gives up a try that never ends after the open time', () => {
  const some = circuits(1)
  some.failed(path, 0)
  expect([some.allows(path, 10_000), some.allows(path, 19_999), some.allows(path, 20_000)]).toEqual([true, false, true])
})

test('opens for as long as the provider asks, at most a minute', () => {
  const some = circuits()
  some.rest(path, 0, 5000)
  expect([some.allows(path, 4999), some.allows(path, 5000), some.allows(path, 5000)]).toEqual([false, true, true])
  some.rest(other, 0, 3_600_000)
  expect([some.allows(other, 59_999), some.allows(other, 60_000)]).toEqual([false, true])
})

test('never opens when failures are not counted', () => {
  const some = circuits(0)
  for (let index = 0; index < 100; index++) some.failed(path, 0)
  expect(some.allows(path, 0)).toBe(true)
})

test('tries every path again within the longest open time', () => {
  const event = fc.record({
    what: fc.constantFrom('failed', 'answered', 'rest', 'allows'),
    after: fc.integer({ min: 0, max: 20_000 }),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const some = circuits(2)
      let now = 0
      for (const { what, after } of events) {
        now += after
        if (what === 'failed') some.failed(path, now)
        else if (what === 'answered') some.answered(path)
        else if (what === 'rest') some.rest(path, now, after)
        else some.allows(path, now)
      }
      expect(some.allows(path, now + 60_000)).toBe(true)
    }),
  )
})
