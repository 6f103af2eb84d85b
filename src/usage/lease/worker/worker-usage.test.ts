/** When a worker asks, and when it does not; what it is answered to what is in usage/lease/protocol.test.ts. */
import { beforeEach, expect, test } from 'bun:test'
import { Scheduler } from '../../testing/usage-model.ts'
import { UsageRefused } from '../../usage-limits.ts'
import type { LeaseReply, LeaseRequest } from '../lease.ts'
import { WorkerUsage } from './worker-usage.ts'

const account = 'token/t/requests'
const empty = { registration: null, balances: [], grants: [], refusals: [], deferred: [] }
let scheduler: Scheduler
let asked: number[]
let answer: Partial<LeaseReply>
let worker: WorkerUsage
let registrations: number
let behind: boolean

beforeEach(async () => {
  scheduler = new Scheduler()
  asked = []
  registrations = 0
  behind = false
  answer = { refusals: [{ account, reason: 'unknown', retry_after: 1, left: null, until: null }] }
  worker = new WorkerUsage({
    usageWaitMs: 2000,
    process: 'process',
    crash: { happened: false, reported: () => undefined },
    clock: { now: () => scheduler.now, monotonic: () => scheduler.now },
    journal: { hasUnwrittenOutcomes: false, lastEvent: 0, acknowledgedEvent: 0, committed: () => Promise.resolve() },
    after: (milliseconds, work) => scheduler.after(milliseconds, work),
    send: reply,
  })
  worker.connected()
  await scheduler.run(10)
})

const reply = ({ registration, grant_requests }: LeaseRequest): Promise<LeaseReply> => {
  if (registration !== null) {
    registrations += 1
    return Promise.resolve({ ...empty, registration: behind ? 'behind' : 'done' })
  }
  if (grant_requests.length > 0) asked.push(scheduler.now)
  return Promise.resolve({ ...empty, ...(grant_requests.length > 0 ? answer : {}) })
}

const demands = [{ account, want: 1, min: 1 }]
const request = () =>
  Promise.resolve(worker.reserve(demands, new AbortController().signal)).then(
    () => 'served',
    (error: unknown) => (error instanceof UsageRefused ? `${error.reason} ${error.retryAfter}` : String(error)),
  )

test('asks once per retry interval while the control plane does not know what is left', async () => {
  const waiting = [request(), request()]
  await scheduler.run(500)
  waiting.push(request(), request())
  await scheduler.run(3200)
  expect(await Promise.all(waiting)).toEqual(['unknown 1', 'unknown 1', 'unknown 1', 'unknown 1'])
  expect(asked).toEqual([10, 1010, 2010])
})

test('serves a request that waits until the control plane knows what is left', async () => {
  const waiting = request()
  await scheduler.run(500)
  answer = {
    balances: [{ account, rounds: 0, granted: 3, returned: 0, settled: 0 }],
    grants: [{ account, booked: account, near_limit: false, partial: false, until: null }],
  }
  await scheduler.run(1100)
  expect(await waiting).toBe('served')
})

test('asks at once after a recall of the account and after a new stream', async () => {
  const waiting = request()
  await scheduler.run(200)
  worker.recall([account])
  await scheduler.run(300)
  scheduler.after(0, () => worker.connected())
  await scheduler.run(400)
  expect(asked).toEqual([10, 200, 300])
  await scheduler.run(3000)
  expect(await waiting).toBe('unknown 1')
})

test('registers again a few times a second while its events are still being shipped', async () => {
  behind = true
  scheduler.after(0, () => worker.connected())
  await scheduler.run(3300)
  expect(registrations).toBeLessThan(20)
  behind = false
  const waiting = request()
  await scheduler.run(3700)
  expect(asked).toHaveLength(1)
  await scheduler.run(7000)
  expect(await waiting).toBe('unknown 1')
})
