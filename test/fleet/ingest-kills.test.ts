/**
 * A sidecar under load, and kill -9 of what its events pass on their way: its replicator, the ledger's server, that
 * of the state, all of them at once. Every answer that was completed has its outcome in the ledger then, once.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { recordedEvents } from '../../src/events/testing/recorded.ts'
import { createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { descendantsOf, signal } from '../support/processes.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'
import { count } from './invariants.ts'
import { startLoad } from './load.ts'

setDefaultTimeout(120_000)

const callers = 6
const answersBetween = 30

let fleet: FleetUnderTest

beforeAll(async () => {
  fleet = await startFleet({ gateways: 1 })
}, 240_000)
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]()
}, 60_000)

/** The last of the line: the supervisor's gateway's replicator. */
function killReplicator(): void {
  const pid = descendantsOf(fleet.gateways[0]?.running().pid() ?? 0).at(-1)
  if (pid === undefined) throw new Error('The sidecar has no replicator')
  signal(pid, 'SIGKILL')
}

const inLedger = async (): Promise<number> =>
  (await recordedEvents(fleet.primary.log, 'gateway.request.outcome')).length

test('records each outcome exactly once when a replicator, a primary and a control plane are killed during ingest', async () => {
  const { primary, planes, gateways } = fleet
  const load = startLoad(Array(callers).fill(gateways[0]), [(await createToken(planes[0])).token_value])
  const completed = () => load.answers.filter(({ status }) => status === 200).length
  const kills: Record<string, () => Promise<void> | void> = {
    'the replicator': killReplicator,
    "the ledger's server": () => primary.ledger.restart(),
    "the state's server": () => primary.state.restart(),
    'the control plane': () => planes[0].restart(),
    'all of them': async () => {
      killReplicator()
      await Promise.all([primary.ledger.restart(), primary.state.restart(), planes[0].restart()])
    },
  }
  const counts: string[] = []
  for (const [what, kill] of Object.entries(kills)) {
    const before = completed()
    await until('more answers are complete', () => completed() >= before + answersBetween, { withinMs: 30_000 })
    counts.push(`${what}: ${completed()} completed, ${await inLedger()} in the ledger`)
    await kill()
  }
  const before = completed()
  await until('the sidecar answers still', () => completed() >= before + answersBetween, { withinMs: 30_000 })
  await load.stop()
  const counted = await count(fleet, { answers: load.answers, ended: new Map(), limits: new Map(), gateways })
  expect(counted).toMatchObject({ eventsMissing: 0, eventsTwice: 0, replicasUnequal: 0, verifyExitCode: 0 })
  expect(counted.accepted).toBeGreaterThanOrEqual(6 * answersBetween)
  console.info(`${counts.join('; ')}; at the end ${counted.accepted} completed, ${await inLedger()} in the ledger`)
})
