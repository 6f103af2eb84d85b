/**
 * `bun run bench`: what governing a request costs, against the least that a proxy on the same machine can do. One run
 * starts a provider, a bare pass-through and `gatehouse up` on the executable, and measures them in alternating rounds,
 * so that a slow minute of the machine falls on all alike. Prints one table and writes bench.json; compare the ratios,
 * not the absolute numbers. `--quick` measures for seconds instead of minutes.
 *
 * On while measuring: token authentication, bindings of team and models, prompt hash, open record before dispatch,
 * attempt and outcome events shipped to the ledger.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { createToken, installation, revoke } from '../client.ts'
import { eventually } from '../eventually.ts'
import { repository } from '../executable.ts'
import { collect, type Gatehouse, startGatehouse } from '../harness.ts'
import { processorSeconds, residentBytes } from '../processes.ts'
import { settledCount } from './ledger-count.ts'
import { type FirstToken, firstTokenWith, type Latency, sendAtRate } from './open-loop.ts'
import { type Measured, print, table } from './report.ts'
import { generator, type Saturation, saturate } from './saturation.ts'
import { median, percentile, type Target } from './target.ts'

const quick = process.argv.includes('--quick')
const plan = quick
  ? { rounds: 2, seconds: 2, latencySeconds: 3, streamRounds: 3, starts: 2, revocations: 10 }
  : { rounds: 5, seconds: 8, latencySeconds: 20, streamRounds: 20, starts: 7, revocations: 100 }
const connections = 16
const streams = 64
const path = '/v1/chat/completions'

/** Starts a process of the bench and learns its address from its first line. */
async function startProcess(file: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file), ...args], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const stdout = collect(child.stdout)
  const url = await eventually(() => String(JSON.parse(stdout()).url))
  return { url, stop: () => child.kill() }
}

async function measureStarts(): Promise<number> {
  const times: number[] = []
  for (let start = 0; start < plan.starts; start++) {
    await using fresh = await startGatehouse()
    times.push(fresh.startUpMs)
  }
  return median(times)
}

async function measureRevocations(gatehouse: Gatehouse): Promise<number[]> {
  const times: number[] = []
  for (let index = 0; index < plan.revocations; index++) {
    const { id } = await createToken(gatehouse)
    const startedAt = performance.now()
    await revoke(gatehouse, id)
    times.push(performance.now() - startedAt)
  }
  return times
}

/** Runs a measurement on each target in turn, so many times. */
async function alternate<Result>(
  targets: readonly Target[],
  rounds: number,
  measure: (target: Target) => Promise<Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(targets.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) results.get(target.name)?.push(await measure(target))
  }
  return results
}

const middle = <Result>(results: Map<string, Result[]>, name: string, read: (result: Result) => number): number =>
  median((results.get(name) ?? []).map(read))

async function measure(
  upstreamUrl: string,
  passThroughUrl: string,
  gatehouse: Gatehouse,
): Promise<Omit<Measured, 'ready_ms'>> {
  const { teamId } = await installation(gatehouse)
  const token = await createToken(gatehouse, {
    bindings: { team_id: teamId, model_filter: ['bench-*', 'simulator/*'] },
  })
  const upstream: Target = { name: 'upstream', url: `${upstreamUrl}/alone${path}`, token: 'none' }
  const direct: Target = { name: 'direct', url: `${passThroughUrl}/direct${path}`, token: 'none' }
  const governed: Target = { name: 'governed', url: `${gatehouse.gatewayUrl}${path}`, token: token.token_value }
  const pair = [direct, governed]

  for (const target of [upstream, ...pair]) await saturate(target, connections, 1)
  const parts = { gateway: gatehouse.gatewayPid(), control_plane: gatehouse.controlPlanePid() }
  const processorBefore = {
    gateway: processorSeconds(parts.gateway),
    control_plane: processorSeconds(parts.control_plane),
  }
  const outcomesBefore = (await settledCount(gatehouse.dataDirectory)).outcomes
  const residentBefore = residentBytes(parts.gateway)
  const saturation: Map<string, Saturation[]> = await alternate([upstream, ...pair], plan.rounds, (target) =>
    saturate(target, connections, plan.seconds),
  )
  const rate = Math.floor(middle(saturation, 'governed', (result) => result.requestsPerSecond) / 2)
  const afterSaturation = await settledCount(gatehouse.dataDirectory)
  const microsecondsEach = (part: keyof typeof parts) =>
    ((processorSeconds(parts[part]) - processorBefore[part]) * 1e6) / (afterSaturation.outcomes - outcomesBefore)
  const processor = { gateway: microsecondsEach('gateway'), control_plane: microsecondsEach('control_plane') }
  const latency: Map<string, Latency[]> = await alternate(pair, plan.rounds, (target) =>
    sendAtRate(target, rate, plan.latencySeconds),
  )
  const firstToken: Map<string, FirstToken[]> = await alternate(pair, plan.rounds, (target) =>
    firstTokenWith(target, streams, plan.streamRounds),
  )
  const residentAfter = residentBytes(parts.gateway)
  const atTheEnd = await settledCount(gatehouse.dataDirectory)
  const sent = [...(latency.get('governed') ?? []), ...(firstToken.get('governed') ?? [])].reduce(
    (sum, result) => sum + result.sent,
    0,
  )
  const revocations = await measureRevocations(gatehouse)
  const perSecond = (name: string) => middle(saturation, name, (result) => result.requestsPerSecond)
  return {
    requests_per_second: {
      upstream: perSecond('upstream'),
      direct: perSecond('direct'),
      governed: perSecond('governed'),
      failed: (saturation.get('governed') ?? []).reduce((sum, { failed }) => sum + failed, 0),
    },
    latency_at_half: {
      requests_per_second: rate,
      direct_p50_ms: middle(latency, 'direct', ({ p50Ms }) => p50Ms),
      governed_p50_ms: middle(latency, 'governed', ({ p50Ms }) => p50Ms),
      direct_p99_ms: middle(latency, 'direct', ({ p99Ms }) => p99Ms),
      governed_p99_ms: middle(latency, 'governed', ({ p99Ms }) => p99Ms),
      generator_late_p99_ms: middle(latency, 'governed', ({ generatorLateP99Ms }) => generatorLateP99Ms),
      failed: (latency.get('governed') ?? []).reduce((sum, { failed }) => sum + failed, 0),
    },
    first_token_64_streams: {
      direct_p50_ms: middle(firstToken, 'direct', ({ p50Ms }) => p50Ms),
      governed_p50_ms: middle(firstToken, 'governed', ({ p50Ms }) => p50Ms),
      direct_p99_ms: middle(firstToken, 'direct', ({ p99Ms }) => p99Ms),
      governed_p99_ms: middle(firstToken, 'governed', ({ p99Ms }) => p99Ms),
    },
    processor_microseconds_a_request: processor,
    gateway_resident_mebibytes: { before: residentBefore / 1024 ** 2, after: residentAfter / 1024 ** 2 },
    revocation_ms: { p50: percentile(revocations, 0.5), p99: percentile(revocations, 0.99) },
    ledger: {
      requests_sent: sent,
      outcomes_recorded: atTheEnd.outcomes - afterSaturation.outcomes,
      events_in_all: atTheEnd.events,
      outcomes_in_all: atTheEnd.outcomes,
      exchanges_in_all: atTheEnd.exchanges,
      shipping_after_saturation_ms: afterSaturation.waitedMs,
    },
  }
}

console.error(`load generator: ${generator}; ${cpus().length} × ${cpus()[0]?.model}; Bun ${Bun.version}`)
const upstream = await startProcess('mock-upstream.ts')
const passThrough = await startProcess('pass-through.ts', upstream.url)
try {
  const readyMs = await measureStarts()
  await using gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url}/governed/v1` } })
  const measured = { ...(await measure(upstream.url, passThrough.url, gatehouse)), ready_ms: readyMs }
  print(table(measured))
  const setting = { generator, quick, connections, streams, plan, bun: Bun.version, processors: cpus().length }
  await Bun.write(join(repository, 'bench.json'), `${JSON.stringify({ setting, ...measured }, null, 2)}\n`)
} finally {
  passThrough.stop()
  upstream.stop()
}
