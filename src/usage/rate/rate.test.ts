/**
 * Limits a minute on several workers, both sides of the protocol in simulated time: never more than there are, never
 * fewer.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { account, attempt, never, one, tokens, world } from '../testing/rates.ts'
import { promptly, SlotWorld } from '../testing/slots.ts'
import { slotMinuteMs } from './rate.ts'
import { noPast, type RateDemand } from './rates.ts'
import { WorkerRates } from './worker-rates.ts'

test('a worker that is alone with a limit asks once, then takes slots from memory', async () => {
  const inside = world(100)
  inside.start('a')
  const passed: number[] = []
  attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 100)
  expect(passed).toHaveLength(1)
  const worker = inside.workers.get('a')
  for (let index = 0; index < 99; index++) expect(worker?.take([one(100)], never)).not.toBeInstanceOf(Promise)
  expect(inside.messages).toBe(1)
})

test('several workers together give exactly as many slots as the limit has', async () => {
  const inside = world(100)
  const passed: number[] = []
  for (const name of ['a', 'b', 'c']) inside.start(name)
  for (let index = 0; index < 500; index++) {
    inside.at(inside.now + index, () => void attempt(inside, 'abc'[index % 3] ?? 'a', [one(100)], passed))
  }
  await inside.until(inside.now + 5000)
  expect(passed).toHaveLength(100)
})

test('a slot is free again one minute after its use, and not before', async () => {
  const inside = world(1)
  inside.start('a')
  const passed: number[] = []
  attempt(inside, 'a', [one(1)], passed)
  await inside.until(inside.now + 59_000)
  const early = attempt(inside, 'a', [one(1)], passed)
  await inside.until(inside.now + 500)
  expect([passed.length, early.refused?.reason]).toEqual([1, 'used'])
  expect(early.refused?.retryAfter).toBeLessThanOrEqual(2)
  await inside.until(inside.now + 2000)
  attempt(inside, 'a', [one(1)], passed)
  await inside.until(inside.now + 500)
  expect(passed).toHaveLength(2)
})

test('a refused request gives its slots back, and tokens are corrected to the actual use', async () => {
  const inside = world(100)
  const worker = inside.start('a')
  const want = { account: tokens, slots: 80, least: 80, limit: 100 }
  const first = await Promise.all([worker.take([want], never), inside.until(inside.now + 100)])
  first[0].release()
  const ticket = await worker.take([want], never)
  ticket.correct(30)
  expect(worker.take([{ ...want, slots: 70, least: 70 }], never)).not.toBeInstanceOf(Promise)
  const refused = attempt(inside, 'a', [{ ...want, slots: 1, least: 1 }], [])
  await inside.until(inside.now + 1000)
  expect(refused.refused?.reason).toBe('used')
})

test('a refusal says when enough slots are free again', async () => {
  const inside = world(100)
  const worker = inside.start('a')
  const want = (slots: number): RateDemand => ({ account, slots, least: slots, limit: 100 })
  await Promise.all([worker.take([want(10)], never), inside.until(inside.now + 100)])
  await inside.until(inside.now + 20_000)
  worker.take([want(90)], never)
  const few = attempt(inside, 'a', [want(5)], [])
  await inside.until(inside.now + 2500)
  const many = attempt(inside, 'a', [want(50)], [])
  await inside.until(inside.now + 2500)
  expect([few.refused?.retryAfter, many.refused?.retryAfter]).toEqual([40, 58])
})

test('asks again for a request whose slots another request took meanwhile', async () => {
  let granted = 0
  const worker = new WorkerRates({
    clock: { monotonic: () => 0, host: () => 0 },
    process: 'p',
    past: noPast,
    sleep: async () => undefined,
    post: async ([balance]) => {
      await new Promise((resolve) => setImmediate(resolve))
      granted = granted === 0 ? 15 : granted + (balance?.want ?? 0)
      return { balances: [{ account: tokens, granted, returned: 0, cooling: [], absent: 0 }] }
    },
  })
  const want = { account: tokens, slots: 11, least: 11, limit: 100 }
  const first = await worker.take([want], never)
  const waiting = worker.take([want], never)
  first.correct(4)
  expect(worker.take([want], never)).not.toBeInstanceOf(Promise)
  await waiting
  expect(granted).toBe(26)
})

test('takes slots of all limits or of none', async () => {
  const inside = new SlotWorld(
    new Map([
      ['g', 10],
      ['h', 1],
    ]),
    () => promptly,
  )
  const worker = inside.start('a')
  const both = [one(10), { account: 'group/h/requests', slots: 1, least: 1, limit: 1 }]
  const passed: number[] = []
  attempt(inside, 'a', both, passed)
  await inside.until(inside.now + 1000)
  const second = attempt(inside, 'a', both, passed)
  await inside.until(inside.now + 1000)
  expect([passed.length, second.refused?.account]).toEqual([1, 'group/h/requests'])
  for (let index = 0; index < 9; index++) expect(worker.take([one(10)], never)).not.toBeInstanceOf(Promise)
})

test('without a control plane a worker uses its slots until they lapse', async () => {
  const inside = world(100)
  inside.start('a')
  const passed: number[] = []
  attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 100)
  inside.cut.add('a')
  await inside.until(inside.now + 20_000)
  attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 20_000)
  const lapsed = attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect([passed.length, lapsed.refused?.reason]).toEqual([2, 'unknown'])
})

test('workers that started and stopped leave nothing in the ledger once their slots are cold', async () => {
  const inside = world(10)
  const passed: number[] = []
  for (let index = 0; index < 5; index++) {
    inside.start('a')
    attempt(inside, 'a', [one(10)], passed)
    await inside.until(inside.now + 1000)
  }
  await inside.until(inside.now + 120_000)
  attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 1000)
  expect(inside.ledger.query('select worker from rate_holdings').all()).toEqual([{ worker: 'a' }])
})

test('slots that lapsed while in use go to nobody else before they are cold', async () => {
  const inside = world(10)
  inside.start('a')
  inside.start('b')
  const passed: number[] = []
  attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 100)
  inside.cut.add('a')
  await inside.until(inside.now + 29_000)
  for (let index = 0; index < 9; index++) attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 2000)
  expect(passed).toHaveLength(10)
  inside.cut.delete('a')
  for (let index = 0; index < 10; index++) attempt(inside, 'b', [one(10)], passed)
  await inside.until(inside.now + 5000)
  expect(passed).toHaveLength(10)
  await inside.until(inside.now + 60_000)
  for (let index = 0; index < 10; index++) attempt(inside, 'b', [one(10)], passed)
  await inside.until(inside.now + 5000)
  expect(passed).toHaveLength(20)
})

test('slots of a lost worker come back once all of them are cold', async () => {
  const inside = world(10)
  inside.start('a')
  inside.start('b')
  const passed: number[] = []
  attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 100)
  inside.cut.add('a')
  const early = attempt(inside, 'b', [one(10)], passed)
  await inside.until(inside.now + 80_000)
  expect(early.refused?.reason).toBe('used')
  await inside.until(inside.now + 12_000)
  attempt(inside, 'b', [one(10)], passed)
  await inside.until(inside.now + 1000)
  expect(passed).toHaveLength(2)
})

const delay = fc.integer({ min: 0, max: 3000 })
const fates = fc.record({
  there: delay,
  back: delay,
  lost: fc.oneof(
    { weight: 6, arbitrary: fc.constant('no' as const) },
    fc.constantFrom('message' as const, 'answer' as const),
  ),
  again: fc.option(fc.integer({ min: 0, max: 100_000 }), { freq: 5 }),
})
const workers = ['a', 'b', 'c'] as const
const steps = fc.array(
  fc.record({
    wait: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 20_000 })),
    worker: fc.constantFrom(...workers),
    act: fc.oneof(
      { weight: 12, arbitrary: fc.constant('take' as const) },
      fc.constantFrom(
        'burst' as const,
        'kill' as const,
        'crash' as const,
        'stop' as const,
        'cut' as const,
        'mend' as const,
      ),
    ),
  }),
  { minLength: 20, maxLength: 80 },
)

test('in any minute no more pass than the limit, under loss, delay, repetition, partitions and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fates, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 6 }),
      async (acts, list, limit) => {
        let messages = 0
        const inside = world(limit, () => list[messages++ % list.length] ?? promptly)
        for (const name of workers) inside.start(name, workers.indexOf(name) * 12_345)
        const passed: number[] = []
        const tick = () => {
          for (const worker of inside.workers.values()) worker.tick()
          inside.at(inside.now + 1000, tick)
        }
        tick()
        for (const { wait, worker, act } of acts) {
          await inside.until(inside.now + wait)
          if (act === 'kill' || act === 'crash') inside.start(worker, workers.indexOf(worker) * 54_321, act)
          else if (act === 'stop') {
            void inside.workers.get(worker)?.drain()
            inside.start(worker, workers.indexOf(worker) * 12_345)
          } else if (act === 'cut') inside.cut.add(worker)
          else if (act === 'mend') inside.cut.delete(worker)
          else
            for (let index = 0; index < (act === 'burst' ? limit + 2 : 1); index++)
              attempt(inside, worker, [one(limit)], passed)
        }
        await inside.until(inside.now + 10_000)
        const times = passed.toSorted((first, second) => first - second)
        for (const [index, time] of times.entries()) {
          const next = times[index + limit]
          if (next !== undefined) expect(next - time).toBeGreaterThanOrEqual(slotMinuteMs)
        }
      },
    ),
    { numRuns: 60 },
  )
}, 60_000)

test('on a network without loss exactly as many pass as the limit allows, in any order of requests', async () => {
  const waits = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(
      waits,
      fc.constantFrom(10, 300, 1500),
      fc.integer({ min: 1, max: 60 }),
      async (delays, span, limit) => {
        let messages = 0
        const next = () => delays[messages++ % delays.length] ?? 0
        const inside = world(limit, () => ({ ...promptly, there: next(), back: next() }))
        for (const name of workers) inside.start(name)
        const passed: number[] = []
        for (let index = 0; index < 5 * limit; index++) {
          const worker = workers[index % workers.length] ?? 'a'
          inside.at(inside.now + ((index * 7919) % span), () => void attempt(inside, worker, [one(limit)], passed))
        }
        await inside.until(inside.now + 10_000)
        expect(passed).toHaveLength(limit)
      },
    ),
    { numRuns: 25 },
  )
}, 60_000)

test('on a network without loss no request is refused while all requests together fit', async () => {
  const bursts = fc.array(
    fc.record({
      wait: fc.integer({ min: 0, max: 1500 }),
      parts: fc.array(
        fc.record({ worker: fc.constantFrom(...workers), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
        {
          minLength: 1,
          maxLength: 6,
        },
      ),
    }),
    { minLength: 1, maxLength: 8 },
  )
  const delays = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 30 })
  const limits = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 5000 }))
  await fc.assert(
    fc.asyncProperty(bursts, delays, limits, async (list, late, limit) => {
      let messages = 0
      const next = () => late[messages++ % late.length] ?? 0
      const inside = world(limit, () => ({ ...promptly, there: next(), back: next() }))
      for (const name of workers) inside.start(name, workers.indexOf(name) * 12_345)
      let rest = limit
      for (const { wait, parts } of list) {
        await inside.until(inside.now + wait)
        const attempts = parts.map(({ worker, share }) => {
          const slots = Math.max(1, Math.floor((rest / parts.length) * share))
          if (slots > rest) return null
          rest -= slots
          return attempt(inside, worker, [{ account, slots, least: slots, limit }], [])
        })
        await inside.until(inside.now + 2500)
        for (const made of attempts) if (made !== null) expect(made.refused).toBeNull()
        for (const made of attempts) if (made !== null) expect(made.ticket).not.toBeNull()
      }
    }),
    { numRuns: 60 },
  )
}, 60_000)

test('a refused request succeeds after its Retry-After on any worker, and would fail two seconds earlier', async () => {
  const uses = fc.array(
    fc.record({ wait: fc.integer({ min: 0, max: 9000 }), worker: fc.constantFrom(...workers), slots: fc.nat(20) }),
    { minLength: 1, maxLength: 12 },
  )
  await fc.assert(
    fc.asyncProperty(uses, fc.constantFrom(...workers), fc.integer({ min: 1, max: 60 }), async (list, asker, limit) => {
      const again = async (early: number) => {
        const inside = world(limit)
        for (const name of workers) inside.start(name, workers.indexOf(name) * 12_345)
        let rest = limit
        for (const { wait, worker, slots } of list) {
          await inside.until(inside.now + wait)
          const taken = Math.min(rest, slots + 1)
          rest -= taken
          if (taken > 0) attempt(inside, worker, [{ account, slots: taken, least: taken, limit }], [])
        }
        await inside.until(inside.now + 2500)
        const lacking = Math.min(limit, rest + 1)
        const want = [{ account, slots: lacking, least: lacking, limit }]
        const first = attempt(inside, asker, want, [])
        // The wait is counted from the refusal, not from the request.
        for (let waited = 0; waited < 2500 && first.refused === null; waited += 50) await inside.until(inside.now + 50)
        const told = first.refused?.retryAfter ?? null
        if (told === null || told < early + 3) return null
        await inside.until(inside.now + 1000 * (told - early))
        const second = attempt(inside, asker, want, [])
        await inside.until(inside.now + 2500)
        return second.refused?.reason ?? 'taken'
      }
      expect([null, 'taken']).toContain(await again(0))
      if (list.length > 0) expect([null, 'used']).toContain(await again(2))
    }),
    { numRuns: 40 },
  )
}, 60_000)
