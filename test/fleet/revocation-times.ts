/**
 * How long revocations take with a fleet: `bun test/fleet/revocation-times.ts --gateways 20 --revocations 200`. Two
 * control planes on one primary, gateways dealt to them in turn, revocations asked of both in turn, one after another,
 * `--pause` milliseconds apart. Beside them, in the same run, what a machine as busy as this one allows:
 *
 *   one read   a call of the API that reads one token
 *   the floor  one message to as many processes over as many event streams, and one small request back from each: a
 *              revocation without databases, durability or tokens
 *
 * and which processes the processor's time of one revocation went to.
 */
import { parseArgs } from 'node:util'
import { revokedToken } from '../answers.ts'
import { api, createToken, expectAnswer, revoke } from '../client.ts'
import { descendantsOf, processorSeconds } from '../processes.ts'
import { startFleet } from './fleet.ts'
import { startPingPong } from './ping-pong.ts'

const { values } = parseArgs({
  options: {
    gateways: { type: 'string', default: process.env.FLEET_SIDECARS ?? '20' },
    revocations: { type: 'string', default: '200' },
    pause: { type: 'string', default: '0' },
  },
})

const count = Number(values.gateways)
const times = { read: [] as number[], revocation: [] as number[], floor: [] as number[] }
let acknowledged = 0

async function timed<Result>(into: number[], work: () => Promise<Result>): Promise<Result> {
  const began = performance.now()
  const result = await work()
  into.push(performance.now() - began)
  return result
}

const at = (measured: number[], share: number): string =>
  (measured.toSorted((one, other) => one - other)[Math.floor((measured.length - 1) * share)] ?? Number.NaN).toFixed(1)

async function measureFleet(): Promise<void> {
  await using fleet = await startFleet({ gateways: count })
  const kinds = {
    'server of the state': [fleet.primary.state.pid()],
    'server of the ledger': [fleet.primary.ledger.pid()],
    'control planes': fleet.planes.flatMap((plane) => family(plane.running().pid())),
    gateways: fleet.gateways.flatMap((gateway) => family(gateway.running().pid())),
  }
  const ids: string[] = []
  for (let round = 0; round < Number(values.revocations); round++) ids.push((await createToken(fleet.planes[0])).id)
  const before = spent(kinds)
  for (const [round, id] of ids.entries()) {
    const plane = fleet.planes[round % 2 === 0 ? 0 : 1]
    await timed(times.read, () => api(plane, `/v1/tokens/${id}`))
    const { propagation } = expectAnswer(await timed(times.revocation, () => revoke(plane, id)), 200, revokedToken)
    if (propagation.acknowledged === count) acknowledged += 1
    await Bun.sleep(Number(values.pause))
  }
  const after = spent(kinds)
  console.log(`${count} gateways, ${ids.length} revocations, ${acknowledged} of them acknowledged by all`)
  for (const [kind, seconds] of Object.entries(after)) {
    const each = ((seconds - (before[kind] ?? 0)) * 1000) / ids.length
    console.log(`${kind.padEnd(20)}  ${each.toFixed(1)} ms of the processor a revocation`)
  }
}

const family = (pid: number): number[] => [pid, ...descendantsOf(pid)]

const spent = (kinds: Record<string, number[]>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(kinds).map(([kind, pids]) => [kind, pids.reduce((sum, pid) => sum + processorSeconds(pid), 0)]),
  )

async function measureFloor(): Promise<void> {
  await using pingPong = await startPingPong(count)
  for (let round = 0; round < Number(values.revocations); round++) {
    await timed(times.floor, () => pingPong.round())
    await Bun.sleep(Number(values.pause))
  }
}

await measureFleet()
await measureFloor()
for (const [name, measured] of Object.entries(times)) {
  console.log(`${name.padEnd(20)}  p50 ${at(measured, 0.5)} ms  p99 ${at(measured, 0.99)} ms`)
}
