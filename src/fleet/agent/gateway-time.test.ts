import { expect, test } from 'bun:test'
import { GatewayTime } from './gateway-time.ts'

test('corrects a clock that is wrong by ten minutes to within the round-trip time', () => {
  for (const wrong of [600_000, -600_000]) {
    let monotonic = 5
    const time = new GatewayTime({ monotonic: () => monotonic }, 1_000_000 + wrong)
    // Said at 1 000 030, asked 20 before, here 10 later.
    monotonic += 40
    time.synchronize(1_000_030, 15)
    expect(time.now()).toBeWithin(1_000_030, 1_000_061)
  }
})

test('late answers do not worsen the time, quick ones improve it', () => {
  let monotonic = 0
  const time = new GatewayTime({ monotonic: () => monotonic }, 0)
  const ask = (there: number, back: number) => {
    const askedAt = monotonic
    const said = 1_000_000 + monotonic + there
    monotonic += there + back
    time.synchronize(said, askedAt)
    return time.now() - (1_000_000 + monotonic)
  }
  expect(ask(0, 5000)).toBe(-5000)
  expect(ask(1, 2)).toBe(-2)
  expect(ask(0, 3000)).toBe(-2)
  expect(ask(3000, 0)).toBe(0)
})
