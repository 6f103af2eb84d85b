/**
 * Two control planes, three sidecars with load on all of them, and one failure after the other: what no smaller test
 * has. All cases, with a whole fleet: `failure-table.ts`.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { failureCases } from './failure-cases.ts'
import { FailureTrial } from './failure-trial.ts'
import { sound } from './invariants.ts'

setDefaultTimeout(240_000)

let trial: FailureTrial

beforeAll(async () => {
  trial = await FailureTrial.start({ sidecars: 3, killSeconds: 2 })
}, 240_000)
afterAll(async () => {
  await trial?.[Symbol.asyncDispose]()
}, 60_000)

async function holds(name: keyof typeof failureCases): Promise<void> {
  const counted = await trial.run(failureCases[name])
  expect(counted).toMatchObject(sound)
  expect(counted.accepted).toBeGreaterThan(0)
}

test('invariants hold without a failure', () => holds('none'))
test('invariants hold when a control plane is killed while it revokes', () => holds('control plane killed'))
test('invariants hold when sidecars are killed at random', () => holds('sidecars killed'))
const hasCompiler = Bun.which('cc') !== null
test.skipIf(!hasCompiler)('invariants hold with two clocks wrong by ten minutes, one ahead and one behind', () =>
  holds('clocks wrong'),
)
test('invariants hold when a sidecar is disconnected and a token expires meanwhile', () =>
  holds('network cut, token expired'))
