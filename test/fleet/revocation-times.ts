/**
 * How long revocations take with a fleet: `bun test/fleet/revocation-times.ts --gateways 20 --revocations 200`. Two
 * control planes on one primary, gateways dealt to them in turn, revocations asked of both in turn, and that twice:
 *
 *   back to back   the next is asked as soon as one is answered, and waits for what that has left to be done
 *   paced          `--pause` milliseconds apart, as people revoke, when nothing is left to be done
 *
 * Beside them, at the same pace, with the same fleet idle on the same machine:
 *
 *   one read   a call of the API that reads one token, before each revocation
 *   the floor  one message to as many processes over as many event streams, and one small request back from each: a
 *              revocation without databases, durability or tokens
 *
 * and which processes the processor's time of one revocation went to. What the fleet spends when idle is in it, and the
 * more of it the slower the pace: it is measured first, and said for itself.
 */
import { parseArgs } from 'node:util'
import { revokedToken } from '../support/answers.ts'
import { api, createToken, expectAnswer, revoke } from '../support/client.ts'
import { descendantsOf, processorSeconds } from '../support/processes.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'
import { type PingPong, startPingPong } from './ping-pong.ts'

const { values } = parseArgs({
  options: {
    gateways: { type: 'string', default: process.env.FLEET_SIDECARS ?? '20' },
    revocations: { type: 'string', default: '200' },
    pause: { type: 'string', default: '250' },
  },
})

const count = Number(values.gateways)
const revocations = Number(values.revocations)
const idleMs = 10_000
/** What follows a start, or a revocation, is over by then. */
const settleMs = 3000

interface Phase {
  name: string
  times: Record<'one read' | 'revocation' | 'the floor', number[]>
  /** Milliseconds of the processor that one revocation took, by kind of process. */
  spent: Record<string, number>
  acknowledged: number
}

async function timed<Result>(into: number[], work: () => Promise<Result>): Promise<Result> {
  const began = performance.now()
  const result = await work()
  into.push(performance.now() - began)
  return result
}

const family = (pid: number): number[] => [pid, ...descendantsOf(pid)]

/** Milliseconds of the processor so far, by kind of process. */
function spentBy({ primary, planes, gateways }: FleetUnderTest): Record<string, number> {
  const kinds = {
    'server of the state': [primary.state.pid()],
    'server of the ledger': [primary.ledger.pid()],
    'control planes': planes.flatMap((plane) => family(plane.running().pid())),
    gateways: gateways.flatMap((gateway) => family(gateway.running().pid())),
  }
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, pids]) => [
      kind,
      1000 * pids.reduce((sum, pid) => sum + processorSeconds(pid), 0),
    ]),
  )
}

/** What was spent since `before`, shared among so many. */
const spentSince = (fleet: FleetUnderTest, before: Record<string, number>, parts: number): Record<string, number> =>
  Object.fromEntries(
    Object.entries(spentBy(fleet)).map(([kind, spent]) => [kind, (spent - (before[kind] ?? 0)) / parts]),
  )

async function measure(fleet: FleetUnderTest, pingPong: PingPong, name: string, pauseMs: number): Promise<Phase> {
  const times: Phase['times'] = { 'one read': [], revocation: [], 'the floor': [] }
  const ids: string[] = []
  for (let round = 0; round < revocations; round++) ids.push((await createToken(fleet.planes[0])).id)
  await Bun.sleep(settleMs)
  let acknowledged = 0
  const before = spentBy(fleet)
  for (const [round, id] of ids.entries()) {
    const plane = fleet.planes[round % 2 === 0 ? 0 : 1]
    await timed(times['one read'], () => api(plane, `/v1/tokens/${id}`))
    const { propagation } = expectAnswer(await timed(times.revocation, () => revoke(plane, id)), 200, revokedToken)
    if (propagation.acknowledged === count) acknowledged += 1
    await Bun.sleep(pauseMs)
  }
  const spent = spentSince(fleet, before, revocations)
  await Bun.sleep(settleMs)
  for (let round = 0; round < revocations; round++) {
    await timed(times['the floor'], () => pingPong.round())
    await Bun.sleep(pauseMs)
  }
  return { name, times, spent, acknowledged }
}

const at = (measured: number[], share: number): string =>
  (measured.toSorted((one, other) => one - other)[Math.floor((measured.length - 1) * share)] ?? Number.NaN).toFixed(1)

function print(phases: readonly Phase[], idle: Record<string, number>): void {
  const line = (title: string, cells: readonly string[]) =>
    console.log([title.padEnd(24), ...cells.map((cell) => cell.padStart(24))].join(''))
  const all = phases.map(({ acknowledged }) => acknowledged).join(' and ')
  console.log(`${count} gateways, ${revocations} revocations each way; acknowledged by all: ${all}`)
  line('', [...phases.map(({ name }) => name), 'idle'])
  for (const name of ['revocation', 'one read', 'the floor'] as const) {
    line(
      name,
      phases.map(({ times }) => `p50 ${at(times[name], 0.5)} p99 ${at(times[name], 0.99)} ms`),
    )
  }
  for (const [kind, milliseconds] of Object.entries(idle)) {
    const each = phases.map(({ spent }) => `${(spent[kind] ?? 0).toFixed(1)} ms of processor`)
    line(kind, [...each, `${milliseconds.toFixed(1)} ms a second`])
  }
}

await using fleet = await startFleet({ gateways: count })
await using pingPong = await startPingPong(count)
await Bun.sleep(settleMs)
const before = spentBy(fleet)
await Bun.sleep(idleMs)
const idle = spentSince(fleet, before, idleMs / 1000)
const backToBack = await measure(fleet, pingPong, 'back to back', 0)
const paced = await measure(fleet, pingPong, `${values.pause} ms apart`, Number(values.pause))
print([backToBack, paced], idle)
