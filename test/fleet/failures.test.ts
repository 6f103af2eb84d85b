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

test('every invariant holds without a failure', () => holds('none'))
test('every invariant holds while a control plane is killed during revocations', () => holds('control plane killed'))
test('every invariant holds while sidecars are killed at random', () => holds('sidecars killed'))
const hasCompiler = Bun.which('cc') !== null
test.skipIf(!hasCompiler)('every invariant holds with the clocks of two hosts ten minutes ahead and behind', () =>
  holds('clocks wrong'),
)
test('every invariant holds while a sidecar is cut off and a token expires', () => holds('network cut, token expired'))
