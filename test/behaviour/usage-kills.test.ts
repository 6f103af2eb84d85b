/**
 * Kills swept over the whole of a run: gateway, control plane or both are killed after a random while, again and again,
 * each time while another limit is being used up. After each nothing is lost, nothing is booked twice, no limit is
 * passed and all of it can still be used. `USAGE_KILLS` says how often, `USAGE_KILL_SEED` repeats a sweep.
 */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { billing, PaidRequests, paidModel, worstCase } from '../support/paid-requests.ts'
import { isAlive, signal } from '../support/processes.ts'
import { sumsOf } from '../support/recorded.ts'
import { accountsOf, atRest, expectSettledOnce } from '../support/settled-once.ts'

const kills = Number(process.env.USAGE_KILLS ?? 3)
const seed = Number(process.env.USAGE_KILL_SEED ?? 1)

setDefaultTimeout(60_000 + kills * 30_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let second: MoreGateway

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  second = await startMoreGateway(gatehouse, 'second')
})
afterEach(async () => {
  await second[Symbol.asyncDispose]()
  await gatehouse.stop()
  await upstream.close()
})

const targets = {
  'the second gateway and the control plane': () => [second.pid(), gatehouse.controlPlanePid()],
  'the second gateway': () => [second.pid()],
  'the gateway of the installation': () => [gatehouse.gatewayPid()],
  'the control plane': () => [gatehouse.controlPlanePid()],
  'gateway and control plane': () => [gatehouse.gatewayPid(), gatehouse.controlPlanePid()],
} as const
type Target = keyof typeof targets
const targetNames = Object.keys(targets) as Target[]

/** After what part of a run the kill comes: between 0 and 1, the same for each seed. */
const instant = (round: number): number => Bun.hash.xxHash32(`${seed}/${round}`) / 2 ** 32

/** The requests are of different prices, all below the worst case. */
const used = (number: number) => ({ input: 40 + (number % 50), output: 1 + (number % 7) })

/** Where either limit ends the run: requests in one, money in the next. */
const limitsOf = (round: number) =>
  round % 2 === 0 ? { requests: 40, money: 100 * worstCase } : { requests: 1000, money: 20 * worstCase }

const answersAt = async (url: string): Promise<boolean> => {
  try {
    return (await fetch(`${url}/readyz`)).ok
  } catch {
    // Nobody listens yet.
    return false
  }
}

async function kill(target: Target): Promise<void> {
  const pids = await eventually(targets[target], { withinMs: 60_000 })
  for (const pid of pids) signal(pid, 'SIGKILL')
  await until('they are gone', () => !pids.some(isAlive))
  for (const url of [gatehouse.baseUrl, gatehouse.gatewayUrl, second.url]) {
    await until(`${target}: ${url} serves again`, () => answersAt(url), { withinMs: 30_000 })
  }
}

interface Kill {
  target: Target
  afterMs: number
}

/** One limit used up, with a kill while it is or without. Gives how long the first requests took. */
async function round(number: number, killed: Kill | null): Promise<number> {
  const limits = limitsOf(number)
  const bill = billing(used, 10)
  upstream.when(paidModel, bill.reply)
  const body = { max_requests: limits.requests, max_budget: limits.money / 1e9 }
  const token = await createToken(gatehouse, body)
  const accounts = accountsOf(token)
  const requests = new PaidRequests(() => [gatehouse.gatewayUrl, second.url])
  const startedAt = performance.now()
  const sent = requests.send(token.token_value, 90, 12)
  const took = sent.then(() => performance.now() - startedAt)
  if (killed !== null) {
    await Bun.sleep(killed.afterMs)
    await kill(killed.target)
  }
  await sent
  const rest = async () => {
    for (const account of Object.values(accounts)) await atRest(gatehouse, account)
  }
  // Whoever asks again when all is at rest is served until a limit ends it.
  for (let more = true; more; ) {
    await rest()
    const statuses = await requests.send(token.token_value, 12)
    expect(statuses.filter((status) => ![200, 402, 429].includes(status))).toEqual([])
    more = statuses.includes(200)
  }
  await rest()
  const { exchanges, interrupted, settled } = await expectSettledOnce(gatehouse, { token, requests, bill })
  expect(sumsOf(gatehouse, accounts.requests)).toEqual({ settled: exchanges, outstanding: 0 })
  expect(exchanges).toBeLessThanOrEqual(limits.requests)
  expect(settled).toBeLessThanOrEqual(limits.money)
  if (exchanges < limits.requests) expect(limits.money - settled).toBeLessThan(worstCase)
  const when = killed === null ? 'nothing is killed' : `${killed.target} killed after ${Math.round(killed.afterMs)} ms`
  const counts = `${requests.completed.length} answered, ${exchanges} counted, ${interrupted} cut off`
  console.info(`seed ${seed}, ${number}: ${when} of ${Math.round(await took)}; ${counts}, ${settled} nano-dollars`)
  return took
}

test('kills of gateways and control plane at any instant lose no use, double none and exceed no limit', async () => {
  const wholeMs = [await round(0, null), await round(1, null)] as const
  for (let number = 2; number < kills + 2; number++) {
    const target = targetNames[number % targetNames.length] ?? 'the control plane'
    await round(number, { target, afterMs: instant(number) * wholeMs[number % 2 === 0 ? 0 : 1] })
  }
})
