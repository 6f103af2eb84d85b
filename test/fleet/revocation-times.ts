/**
 * How long revocations take with a fleet: `bun test/fleet/revocation-times.ts --gateways 20 --revocations 200`. Two
 * control planes on one primary, gateways dealt to them in turn, revocations asked of both in turn, one after another.
 * Beside them, in the same run, what one read of the API takes: on a busy machine the two go up together.
 */
import { parseArgs } from 'node:util'
import { revokedToken } from '../answers.ts'
import { api, createToken, expectAnswer, revoke } from '../client.ts'
import { startFleet } from './fleet.ts'

const { values } = parseArgs({
  options: {
    gateways: { type: 'string', default: '20' },
    revocations: { type: 'string', default: '200' },
  },
})

const count = Number(values.gateways)
await using fleet = await startFleet({ gateways: count })
const [reads, revocations]: [number[], number[]] = [[], []]
let acknowledged = 0

async function timed<Result>(times: number[], work: () => Promise<Result>): Promise<Result> {
  const began = performance.now()
  const result = await work()
  times.push(performance.now() - began)
  return result
}

for (let round = 0; round < Number(values.revocations); round++) {
  const plane = fleet.planes[round % 2 === 0 ? 0 : 1]
  const { id } = await createToken(plane)
  await timed(reads, () => api(plane, `/v1/tokens/${id}`))
  const { propagation } = expectAnswer(await timed(revocations, () => revoke(plane, id)), 200, revokedToken)
  if (propagation.acknowledged === count) acknowledged += 1
}

const at = (times: number[], share: number): string =>
  (times.toSorted((one, other) => one - other)[Math.floor((times.length - 1) * share)] ?? Number.NaN).toFixed(1)

console.log(`${count} gateways, ${revocations.length} revocations, ${acknowledged} of them acknowledged by all`)
console.log(`revocation  p50 ${at(revocations, 0.5)} ms  p99 ${at(revocations, 0.99)} ms`)
console.log(`one read    p50 ${at(reads, 0.5)} ms  p99 ${at(reads, 0.99)} ms`)
