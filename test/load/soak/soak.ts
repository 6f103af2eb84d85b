/**
 * Whether an installation stays as it is under mixed load: JSON, streams, streams that are left, policy blocks,
 * WebSockets, revocations and changes of the configuration, for an hour or as long as is said: `bun
 * test/load/soak/soak.ts [--minutes N] [--rest N]`; rest makes pauses so many times as long, for a machine that has
 * other work. Samples memory, open files, outbox and latency every 10 seconds, prints the curves, and exits 1 where one
 * of them rises or an answer was not the one to come. The first fifth is for warming up. Token records in memory are
 * kept up to a bound that an hour does not reach: they are shown and not judged.
 */
import { parseArgs } from 'node:util'
import { startGatehouse } from '../../support/harness.ts'
import { openFileCount, processorSeconds, residentBytes } from '../../support/processes.ts'
import { print } from '../bench/report.ts'
import { percentile } from '../generator/timing.ts'
import { startBeside } from '../rig/beside.ts'
import { turnEverythingOn } from '../rig/everything-on.ts'
import { watchMachine } from '../rig/machine.ts'
import { type Allowance, flatnessOf } from './flatness.ts'
import { startSoakLoad } from './soak-load.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, rest: { type: 'string', default: '1' } },
})
const sampleSeconds = 10
const samples = Math.max(3, Math.round((Number(values.minutes) * 60) / sampleSeconds))
const mebibyte = 1024 ** 2

/** What is watched, and by how much it may rise from the end of the warming up to the end. */
const watched = {
  'gateway MiB': { share: 0.1, least: 5 },
  'control plane MiB': { share: 0.1, least: 10 },
  'gateway files': { share: 0, least: 10 },
  'control plane files': { share: 0, least: 10 },
  'outbox MiB': { share: 0.1, least: 4 },
  'unacknowledged events': { share: 0.5, least: 500 },
  'open exchanges': { share: 0.5, least: 16 },
  'tokens in memory': { share: Number.POSITIVE_INFINITY, least: 0 },
  'gateway µs/request': { share: 0.25, least: 0 },
  'p50 ms': { share: 0.5, least: 5 },
  'p99 ms': { share: 1, least: 50 },
} as const satisfies Record<string, Allowance>
type Sample = Record<keyof typeof watched, number>
const names = Object.keys(watched) as (keyof typeof watched)[]

const machine = watchMachine()
using upstream = await startBeside('mock-upstream.ts')
await using gatehouse = await startGatehouse({
  upstream: { baseUrl: `${upstream.url}/v1` },
  // What was acknowledged goes at once: otherwise the outbox grows by its nature for a day.
  env: { SERVICE_OUTBOX_KEEP_HOURS: '0' },
})
const target = await turnEverythingOn(gatehouse)
const pids = { gateway: gatehouse.gatewayPid(), controlPlane: gatehouse.controlPlanePid() }
const load = startSoakLoad(gatehouse, target, Number(values.rest))

/** The sums of a metric over its labels, by the metric's name. */
async function metrics(): Promise<(name: string) => number> {
  const text = await (await fetch(`${gatehouse.gatewayUrl}/metrics`)).text()
  return (name) => {
    const values = text.matchAll(new RegExp(`^gatehouse_${name}(?:\\{.*\\})? (.+)$`, 'gm'))
    return [...values].reduce((sum, [, value]) => sum + Number(value), 0)
  }
}

let last = { seconds: processorSeconds(pids.gateway), requests: 0 }
async function sample(): Promise<Sample> {
  const metric = await metrics()
  const now = { seconds: processorSeconds(pids.gateway), requests: metric('requests_total') }
  const microseconds = ((now.seconds - last.seconds) * 1e6) / (now.requests - last.requests)
  last = now
  const times = load.takeTimes()
  return {
    'gateway MiB': residentBytes(pids.gateway) / mebibyte,
    'control plane MiB': residentBytes(pids.controlPlane) / mebibyte,
    'gateway files': openFileCount(pids.gateway),
    'control plane files': openFileCount(pids.controlPlane),
    'outbox MiB': metric('outbox_bytes') / mebibyte,
    'unacknowledged events': metric('outbox_unacknowledged_events'),
    'open exchanges': metric('open_exchanges'),
    'tokens in memory': metric('tokens_in_memory'),
    'gateway µs/request': microseconds,
    'p50 ms': percentile(times, 0.5),
    'p99 ms': percentile(times, 0.99),
  }
}

const taken: Sample[] = []
console.log(['seconds', ...names].join('\t'))
for (let index = 1; index <= samples; index++) {
  await Bun.sleep(sampleSeconds * 1000)
  const one = await sample()
  taken.push(one)
  console.log([index * sampleSeconds, ...names.map((name) => one[name].toFixed(1))].join('\t'))
}
await load.stop()

const warm = taken.slice(Math.ceil(samples / 5))
const verdicts = names.map((name) => ({
  name,
  ...flatnessOf(
    warm.map((one) => one[name]),
    watched[name],
  ),
}))
print([
  ['figure', 'typical', 'rise', 'may rise', ''],
  ...verdicts.map(({ name, typical, growth, allowed, flat }) => [
    name,
    typical.toFixed(1),
    growth.toFixed(1),
    allowed.toFixed(1),
    flat ? 'flat' : 'RISES',
  ]),
])
console.log('done', Object.fromEntries(load.done), 'unexpected', Object.fromEntries(load.unexpected))
const { taken_by_others: others } = machine()
console.log(`Others took ${Math.round(others * 100)} % of the machine; where that changes, so do times`)
process.exitCode = verdicts.every(({ flat }) => flat) && load.unexpected.size === 0 ? 0 : 1
