/** The usage protocol, both sides of it, through whatever can happen to networks, processes, hosts and disks. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { valueDigest } from '../attribution/dimension.ts'
import { World, type WorldOptions } from '../testing/usage-model.ts'
import { maxRequestedAmount, plainName, roundSize } from './lease.ts'

/** More of them by test/load/soak/usage-repeat.ts. */
const runs = Number(process.env.USAGE_MODEL_RUNS ?? 75)

const requestsOnly = fc
  .integer({ min: 1, max: 60 })
  .map((limit) => ({ limits: { 'token/t/requests': limit }, largest: 1, unit: 1 }))
const several = fc
  .record({
    requests: fc.integer({ min: 5, max: 120 }),
    money: fc.integer({ min: 20, max: 600 }),
    budget: fc.integer({ min: 20, max: 600 }),
    unit: fc.constantFrom(1, roundSize / 8, roundSize * 8),
  })
  .map(({ requests, money, budget, unit }) => ({
    limits: { 'token/t/requests': requests, 'token/t/money': money * unit, 'budget/b': budget * unit },
    largest: 25,
    unit,
  }))

const worlds: fc.Arbitrary<WorldOptions> = fc
  .tuple(
    fc.oneof(requestsOnly, several),
    fc.record({
      seed: fc.integer(),
      workers: fc.integer({ min: 1, max: 6 }),
      controlPlanes: fc.constantFrom(1, 1, 2, 3),
      requests: fc.integer({ min: 1, max: 120 }),
      loss: fc.constantFrom(0, 0, 0.05, 0.3),
      repetition: fc.constantFrom(0, 0.1, 0.5),
      workerCrashes: fc.integer({ min: 0, max: 4 }),
      hostCrashes: fc.constantFrom(0, 0, 1, 2),
      controlPlaneCrashes: fc.integer({ min: 0, max: 3 }),
      partitions: fc.integer({ min: 0, max: 3 }),
      failingWrites: fc.constantFrom(0, 0, 2, 5),
    }),
  )
  .map(([limits, rest]) => ({ ...limits, ...rest }))

test('in random runs no limit is passed, each dispatched exchange is settled once, and nothing stays stranded', async () => {
  let rounds = 0
  await fc.assert(
    fc.asyncProperty(worlds, fc.constantFrom({}, { windowEndsAt: 3000 }), async (options, window) => {
      const world = new World({ ...options, ...window })
      await world.run()
      expect(world.ledger.problems).toEqual([])
      rounds += world.ledger.rounds
      for (const [account, spent] of world.spent) {
        expect(spent).toBeLessThanOrEqual(options.limits[plainName(account)] ?? 0)
      }
      const settledOnce = [...world.dispatched].filter((exchange) => world.ledger.outcomes.get(exchange) !== 1)
      expect(settledOnce).toEqual([])
      expect([...world.ledger.outcomes.values()].every((count) => count === 1)).toBe(true)
      const stranded = [...world.ledger.rows.values()].filter(
        ({ account, worker, granted, returned, settled }) =>
          // A grant of a window that has ended is of no use to anybody, and may be forgotten.
          !account.endsWith('@1') && !world.lost.has(worker) && granted - returned - settled !== 0,
      )
      expect(stranded).toEqual([])
    }),
    { numRuns: runs },
  )
  expect(rounds).toBeGreaterThan(10 * runs)
}, 600_000)

/** A budget of which each of some values has the amount for itself, and the account of no value. */
const budgetsOfValues = fc
  .record({
    requests: fc.integer({ min: 20, max: 120 }),
    money: fc.integer({ min: 5, max: 200 }),
    count: fc.integer({ min: 2, max: 6 }),
  })
  .map(({ requests, money, count }) => ({
    'token/t/requests': requests,
    ...Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`budget/b/${valueDigest(index === 0 ? '' : `v${index}`)}`, money]),
    ),
  }))

test('in random runs no value of a dimension passes the budget that each value has', async () => {
  let spending = 0
  await fc.assert(
    fc.asyncProperty(
      worlds,
      budgetsOfValues,
      fc.constantFrom({}, { windowEndsAt: 3000 }),
      async (options, limits, window) => {
        const world = new World({ ...options, ...window, limits, largest: 25, unit: 1 })
        await world.run()
        expect(world.ledger.problems).toEqual([])
        for (const [account, spent] of world.spent) {
          expect(spent).toBeLessThanOrEqual(new Map(Object.entries(limits)).get(plainName(account)) ?? 0)
          if (account.startsWith('budget/')) spending += 1
        }
        expect([...world.dispatched].filter((exchange) => world.ledger.outcomes.get(exchange) !== 1)).toEqual([])
        const stranded = [...world.ledger.rows.values()].filter(
          ({ account, worker, granted, returned, settled }) =>
            !account.endsWith('@1') && !world.lost.has(worker) && granted - returned - settled !== 0,
        )
        expect(stranded).toEqual([])
      },
    ),
    { numRuns: runs },
  )
  expect(spending).toBeGreaterThan(runs)
}, 600_000)

/** The control plane grants and is killed before the worker's first heartbeat; then a copy without the grants returns. */
const killedBeforeFirstHeartbeat: WorldOptions = {
  ...{ limits: { 'token/t/requests': 5, 'token/t/money': 193, 'budget/b': 20 }, largest: 25, unit: 1 },
  ...{ seed: -31, workers: 1, controlPlanes: 1, requests: 116, loss: 0, repetition: 0.5 },
  ...{ workerCrashes: 0, hostCrashes: 0, controlPlaneCrashes: 3, partitions: 2, failingWrites: 0 },
}

test('in random runs a ledger restored at any moment passes no limit and ends with all spend', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, fc.integer({ min: 1, max: 2 }), fc.boolean(), async (options, restores, workersCrash) => {
      // If a gateway and all control planes fail at once, nobody remembers the lost transactions.
      const crash = workersCrash ? { controlPlaneCrashes: 0 } : { workerCrashes: 0 }
      const world = new World({ ...options, ...crash, hostCrashes: 0, restores })
      await world.run()
      expect(world.ledger.problems).toEqual([])
      const settledOnce = [...world.dispatched].filter((exchange) => world.ledger.outcomes.get(exchange) !== 1)
      expect(settledOnce).toEqual([])
      expect(world.ledger.awaits).toBe(false)
      for (const [account, limit] of Object.entries(options.limits)) {
        expect(world.spent.get(account) ?? 0).toBeLessThanOrEqual(limit)
        expect(world.ledger.settled(account)).toBeGreaterThanOrEqual(world.spent.get(account) ?? 0)
        expect(world.ledger.held(account)).toBe(world.ledger.settled(account))
      }
    }),
    { numRuns: Math.ceil(runs / 3), examples: [[killedBeforeFirstHeartbeat, 1, false]] },
  )
}, 600_000)

test('in random runs a limit is passed only by charges above the bound, and the account stays open meanwhile', async () => {
  let servedAfterwards = 0
  await fc.assert(
    fc.asyncProperty(worlds, fc.constantFrom(0.05, 0.5), async (options, overcharges) => {
      const world = new World({ ...options, overcharges, hostCrashes: 0 })
      await world.run()
      expect(world.ledger.problems).toEqual([])
      for (const [account, limit] of Object.entries(options.limits)) {
        const excesses = [...world.excesses].filter(([name]) => name.endsWith(` ${account}`))
        const beyond = excesses.reduce((sum, [, excess]) => sum + excess, 0)
        const settled = world.ledger.settled(account)
        expect(settled).toBeLessThanOrEqual(limit + beyond)
        // An exchange that a kill ended is booked with what it held.
        expect(settled).toBeGreaterThanOrEqual((world.spent.get(account) ?? 0) - beyond)
        expect(world.ledger.held(account)).toBe(settled)
      }
      const left = Math.min(
        maxRequestedAmount,
        ...Object.entries(options.limits).flatMap(([name, limit]) =>
          name.endsWith('/requests') ? [] : [limit - world.ledger.settled(name)],
        ),
      )
      if (world.excesses.size === 0 || left <= 0) return
      const served = world.request(0, left)
      await world.scheduler.run(world.scheduler.now + 10_000)
      expect(await served).toBe(true)
      servedAfterwards++
    }),
    { numRuns: runs },
  )
  expect(servedAfterwards).toBeGreaterThan(0)
}, 600_000)

test('in random runs any worker can get what no other worker holds', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (options) => {
      const world = new World({ ...options, hostCrashes: 0 })
      await world.run()
      for (const account of Object.keys(options.limits).filter((name) => name.endsWith('/money'))) {
        const left = Math.min(
          maxRequestedAmount,
          ...Object.entries(options.limits)
            .filter(([name]) => !name.endsWith('/requests'))
            .map(([name, limit]) => limit - world.ledger.settled(name)),
        )
        if (left <= 0) continue
        const served = world.request(0, left)
        await world.scheduler.run(world.scheduler.now + 10_000)
        expect({ account, left, served: await served }).toEqual({ account, left, served: true })
      }
    }),
    { numRuns: Math.ceil(runs / 3) },
  )
}, 600_000)

const quiet = {
  loss: 0,
  repetition: 0,
  workerCrashes: 0,
  hostCrashes: 0,
  controlPlaneCrashes: 0,
  partitions: 0,
  failingWrites: 0,
}

test('many concurrent requests over several workers and control planes are served exactly up to the limit', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const world = new World({
      ...quiet,
      seed,
      workers: 3,
      controlPlanes: 1 + (seed % 3),
      limits: { 'token/t/requests': 100 },
      largest: 1,
      unit: 1,
      requests: 0,
    })
    await world.scheduler.run(500)
    for (let request = 0; request < 500; request++) void world.request(request % 3)
    await world.scheduler.run(10_000)
    expect({ seed, served: world.served, ...world.refusals }).toEqual({
      seed,
      served: 100,
      exhausted: 400,
      short: 0,
      held: 0,
      unknown: 0,
      too_many_values: 0,
    })
  }
})

test('a request that waits at the end of a window is served from the next window, and so are later ones', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const world = new World({
      ...quiet,
      ...{ seed, workers: 1 + (seed % 3), controlPlanes: 1 + (seed % 2), lasting: 4000, slowest: 40 },
      ...{ limits: { 'budget/b': 100 }, largest: 1, unit: 1, requests: 0, windowEndsAt: 5000 },
    })
    await world.scheduler.run(3000)
    expect(await soon(world, world.request(0, 100))).toBe(true)
    const results: Promise<boolean>[] = []
    for (const at of [4000, 4900, 4999, 5001, 5300]) {
      world.scheduler.after(at - world.scheduler.now, () =>
        results.push(world.request(results.length % (1 + (seed % 3)), 20)),
      )
    }
    await world.scheduler.run(20_000)
    expect({ seed, served: await Promise.all(results), ...world.refusals }).toEqual({
      ...{ seed, served: [true, true, true, true, true] },
      ...{ exhausted: 0, short: 0, held: 0, unknown: 0, too_many_values: 0 },
    })
    expect(world.ledger.problems).toEqual([])
  }
})

async function soon<Result>(world: World, result: Promise<Result>): Promise<Result> {
  await world.scheduler.run(world.scheduler.now + 500)
  return await result
}

test('with all workers reachable, a refusal says held when running requests hold the rest', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const limits = { 'token/t/money': 100 }
    const slow = { lasting: 2000, slowest: 300 }
    const controlPlanes = 1 + (seed % 3)
    const world = new World({
      ...quiet,
      ...slow,
      seed,
      workers: 3,
      controlPlanes,
      limits,
      largest: 1,
      unit: 1,
      requests: 0,
    })
    await world.scheduler.run(500)
    for (let request = 0; request < 300; request++) {
      world.scheduler.after(world.random() * 400, () => void world.request(request % 3, 1))
    }
    await world.scheduler.run(10_000)
    expect({ seed, unknown: world.refusals.unknown }).toEqual({ seed, unknown: 0 })
  }
})
