import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { accountKey, accountRule, addressKey, countAttempt, forgiveAttempt, sweepAttempts } from './throttle.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const key = accountKey('somebody@example.com')
const start = 1_000_000_000

/** The seconds to wait, or 0 where the attempt was let through. */
async function attempt(now: number): Promise<number> {
  try {
    await countAttempt(store.ledger, key, accountRule, now)
    return 0
  } catch (error) {
    if (error instanceof Failure && error.code === 'sign_in_throttled') return error.retryAfter ?? Number.NaN
    throw error
  }
}

test('the first attempts are free, each further one blocks twice as long, up to a bound', async () => {
  const waits: number[] = []
  let now = start
  for (let free = 0; free < accountRule.free; free += 1) expect(await attempt(now)).toBe(0)
  for (let count = 0; count < 15; count += 1) {
    expect(await attempt(now)).toBe(0)
    const wait = await attempt(now)
    waits.push(wait)
    now += wait * 1000
  }
  expect(waits.slice(0, 5)).toEqual([1, 2, 4, 8, 16])
  expect(Math.max(...waits)).toBe(900)
  expect(waits.at(-1)).toBe(900)
})

test('a thousand attempts at once count like one after another', async () => {
  const outcomes = await Promise.all(Array.from({ length: 300 }, () => attempt(start)))
  expect(outcomes.filter((wait) => wait === 0)).toHaveLength(accountRule.free + 1)
})

test('a success clears the account and one attempt of the address', async () => {
  const address = addressKey('192.0.2.7')
  for (let count = 0; count <= accountRule.free; count += 1) await attempt(start)
  await countAttempt(store.ledger, address, accountRule, start)
  await countAttempt(store.ledger, address, accountRule, start)
  expect(await attempt(start)).toBe(1)
  await forgiveAttempt(store.ledger, { account: key, address })
  expect(await attempt(start)).toBe(0)
  expect(await store.ledger.read('select attempts from sign_in_attempts where key = ?', [address])).toEqual([
    { attempts: 1 },
  ])
})

test('forgets everything after a day without an attempt', async () => {
  for (let count = 0; count <= accountRule.free; count += 1) await attempt(start)
  const later = start + accountRule.memoryMilliseconds + 1
  expect(await attempt(later)).toBe(0)
  expect(await store.ledger.read('select attempts from sign_in_attempts')).toEqual([{ attempts: 1 }])
  await sweepAttempts(store.ledger, later + accountRule.memoryMilliseconds + 1)
  expect(await store.ledger.read('select * from sign_in_attempts')).toEqual([])
})

test('counts an IPv6 address by its network, and an IPv4 address by itself in any notation', () => {
  expect(addressKey('2001:db8:1:2::1')).toBe(addressKey('2001:0DB8:1:2:ffff::9'))
  expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'))
  expect(addressKey('::ffff:192.0.2.1')).toBe(addressKey('192.0.2.1'))
  expect(addressKey('192.0.2.1')).not.toBe(addressKey('192.0.2.2'))
})

test('stores neither address nor e-mail in readable form', async () => {
  await countAttempt(store.ledger, addressKey('192.0.2.1'), accountRule, start)
  await attempt(start)
  const kept = JSON.stringify(await store.ledger.read('select * from sign_in_attempts'))
  expect(kept).not.toContain('192.0.2.1')
  expect(kept).not.toContain('somebody')
})
