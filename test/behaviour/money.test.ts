/**
 * Budgets on many gateways at once, from outside: by JSON, by stream and by WebSocket, what is spent never passes the
 * budget by a nano-dollar, and what is left at the end could not pay for one more request.
 */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import type { CreatedToken } from '../support/answers.ts'
import { createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { type Bill, billing, costOf, mostUsed, PaidRequests, paidModel, worstCase } from '../support/paid-requests.ts'
import { signal } from '../support/processes.ts'
import { sumsOf } from '../support/recorded.ts'
import { accountsOf, atRest, expectSettledOnce } from '../support/settled-once.ts'

setDefaultTimeout(180_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let more: MoreGateway[]
let requests: PaidRequests

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  more = await Promise.all(['second', 'third'].map((name) => startMoreGateway(gatehouse, name)))
  requests = new PaidRequests(() => [gatehouse.gatewayUrl, ...more.map(({ url }) => url)])
})
afterEach(async () => {
  for (const gateway of more) await gateway[Symbol.asyncDispose]()
  await gatehouse.stop()
  await upstream.close()
})

/** How many are sent at once where a test run has time for it, and by the proof that repeats this. */
const crowd = Number(process.env.USAGE_CROWD ?? 300)

interface Spending {
  token: CreatedToken
  bill: Bill
  budget: number
}

/** A token whose budget pays for so much, and the provider's bill for what it is used for. */
async function spending(budget: number, used: () => Parameters<typeof costOf>[0]): Promise<Spending> {
  const bill = billing(used)
  upstream.when(paidModel, bill.reply)
  return { token: await createToken(gatehouse, { max_budget: budget / 1e9 }), bill, budget }
}

const count = (statuses: readonly number[], status: number): number => statuses.filter((each) => each === status).length

/** On a busy machine a gateway may not say in time what it still holds: then nobody knows, and those who ask are told. */
const refusals = new Set(['usage_authorization_budget_exceeded', 'usage_authority_unavailable'])

const usual = { input: 70, output: 4 }

/** What was held when others were refused is there for those who ask again: one after the other, until it is used up. */
async function spendTheRest({ token, bill, budget }: Spending): Promise<void> {
  const { money } = accountsOf(token)
  const [first] = requests.addresses()
  const unspent = () => budget - sumsOf(gatehouse, money).settled
  await atRest(gatehouse, money)
  const left = unspent()
  const again = new PaidRequests(() => [first ?? ''], requests.statuses.size)
  // 503: the gateways' limits are with nobody at this moment, which says nothing of what is left.
  for (let status: number | undefined = 200; status === 200 || status === 503; ) {
    ;[status] = await again.send(token.token_value, 1)
    await atRest(gatehouse, money)
  }
  for (const [number, status] of again.statuses) requests.statuses.set(number, status)
  const { exchanges, interrupted, settled } = await expectSettledOnce(gatehouse, { token, requests, bill })
  expect(settled).toBeLessThanOrEqual(budget)
  expect(budget - settled).toBeLessThan(worstCase)
  console.info(
    `of ${budget} nano-dollars ${settled} in ${exchanges} exchanges, ${interrupted} of them cut off; ` +
      `${left} were left before the rest was asked for`,
  )
}

test('a budget that pays for exactly 100 requests accepts exactly 100 of 500 on three gateways', async () => {
  const { token, bill, budget } = await spending(100 * worstCase, () => mostUsed)
  const statuses = await requests.send(token.token_value, 500)
  // Whoever was told that nobody knows may ask again.
  for (let last = statuses; last.includes(503) && count(statuses, 200) < 100; ) {
    last = await requests.send(token.token_value, 10)
    statuses.push(...last)
  }
  expect(count(statuses, 200)).toBe(100)
  // A busy machine may not take in so many connections at once; whoever was heard and not accepted was refused.
  expect(new Set(statuses).difference(new Set([0, 200, 402, 503]))).toEqual(new Set())
  expect(requests.refusals.difference(refusals)).toEqual(new Set())
  expect(upstream.calls).toHaveLength(100)
  expect(await expectSettledOnce(gatehouse, { token, requests, bill })).toMatchObject({ settled: budget })
})

test('a budget of 100 actual costs is never exceeded, and its remainder cannot pay for another request', async () => {
  const spent = await spending(100 * costOf(usual), () => usual)
  await requests.send(spent.token.token_value, crowd)
  expect(requests.refusals.difference(refusals)).toEqual(new Set())
  await spendTheRest(spent)
})

test('a gateway killed while a budget is spent neither exceeds it nor strands part of it', async () => {
  const spent = await spending(100 * costOf(usual), () => usual)
  const sent = requests.send(spent.token.token_value, crowd)
  const halfDone = () => upstream.calls.length > 50 || requests.statuses.size > crowd / 2
  await until('half of it is spent, or refused', halfDone, { withinMs: 30_000 })
  await more[0]?.restart()
  await sent
  await spendTheRest(spent)
})

test('kills of gateways and control plane neither lose a nano-dollar nor spend one twice', async () => {
  const { token, bill, budget } = await spending(60 * worstCase, () => mostUsed)
  const { money } = accountsOf(token)
  const first = requests.send(token.token_value, 45)
  await until('some are running', () => upstream.calls.length > 8)
  const restarted = more[0]?.restart()
  signal(gatehouse.controlPlanePid(), 'SIGKILL')
  await Promise.all([first, restarted])
  const settled = () => sumsOf(gatehouse, money).settled
  await until('something is settled', () => settled() > 0, { withinMs: 60_000 })
  await atRest(gatehouse, money)
  await requests.send(token.token_value, 240)
  // A request that no control plane could decide about was refused with 503 and spent nothing: others take its place.
  await until(
    'all is settled',
    async () => {
      if (settled() < budget) await requests.send(token.token_value, 10)
      return settled() === budget
    },
    { withinMs: 60_000, everyMs: 200 },
  )
  expect(await expectSettledOnce(gatehouse, { token, requests, bill })).toMatchObject({ settled: budget })
  expect(upstream.calls.length).toBeLessThanOrEqual(60)
})
