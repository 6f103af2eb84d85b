/**
 * `bun run bench`: what governing a request costs, against the least that a proxy on the same machine can do. One run
 * starts a provider, a bare pass-through, `gatehouse up` on the executable, and another with two gateway workers, and
 * measures them in alternating rounds, so that a slow minute of the machine falls on all alike. Prints one table and
 * writes bench.json; compare the ratios, not the absolute numbers. `--quick` measures for seconds instead of minutes.
 *
 * On while measuring: token authentication, bindings of team and models, ten policies of which one scans 400 terms in
 * requests and answers, a budget and a number of requests to reserve from, prompt hash, open record before dispatch,
 * attempt and outcome events shipped to the ledger.
 */
import { join } from 'node:path'
import { repository } from '../../support/executable.ts'
import { startGatehouse } from '../../support/harness.ts'
import { settledCount } from '../events/ledger-count.ts'
import { generator } from '../generator/saturation.ts'
import { startBeside } from '../rig/beside.ts'
import { turnEverythingOn } from '../rig/everything-on.ts'
import { watchMachine } from '../rig/machine.ts'
import { measureLedger, measureRevocations } from './record.ts'
import { print, table } from './report.ts'
import { measureTokens } from './tokens.ts'
import { type BenchTargets, measureTraffic, type Plan } from './traffic.ts'

const quick = process.argv.includes('--quick')
const plan: Plan & { starts: number; tokens: number; revocations: number } = quick
  ? { rounds: 2, seconds: 2, overloadRounds: 2, requests: 20_000, starts: 1, tokens: 100_000, revocations: 10 }
  : { rounds: 5, seconds: 8, overloadRounds: 10, requests: 1_000_000, starts: 5, tokens: 1_000_000, revocations: 100 }

const machine = watchMachine()
using upstream = await startBeside('mock-upstream.ts')
using passThrough = await startBeside('pass-through.ts', upstream.url)
await using gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url}/governed/v1` } })
await using workers = await startGatehouse({
  upstream: { baseUrl: `${upstream.url}/workers/v1` },
  flags: ['--gateway-workers', '2'],
})
const path = '/v1/chat/completions'
const targets: BenchTargets = {
  upstream: { name: 'upstream', url: `${upstream.url}/alone${path}`, token: 'none' },
  direct: { name: 'direct', url: `${passThrough.url}/direct${path}`, token: 'none' },
  governed: await turnEverythingOn(gatehouse),
  workers: { ...(await turnEverythingOn(workers)), name: 'workers' },
}
const before = await settledCount(gatehouse.dataDirectory)
const traffic = await measureTraffic(plan, targets, { upstream, passThrough, gatehouse })
await workers.stop()
const measured = {
  ...traffic,
  ledger: await measureLedger(gatehouse, before, traffic.counted),
  revocation_ms: await measureRevocations(gatehouse, plan.revocations),
  tokens: await measureTokens([plan.tokens], plan.starts),
  machine: machine(),
}
print(table(measured))
console.log(
  `\n${measured.machine.processors} × ${measured.machine.model}, load by ${generator}; others took`,
  `${Math.round(measured.machine.taken_by_others * 100)} % of the machine meanwhile`,
)
await Bun.write(join(repository, 'bench.json'), `${JSON.stringify({ generator, quick, plan, ...measured }, null, 2)}\n`)
