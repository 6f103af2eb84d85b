/** The traffic of the bench: the same requests to each target in turn, at saturation, at half of it, as streams. */
import type { Gatehouse } from '../../support/harness.ts'
import { processorSeconds, residentBytes } from '../../support/processes.ts'
import { settledCount } from '../events/ledger-count.ts'
import { holdStreams, overloadStreams, sendAtRate, type Timed } from '../generator/open-loop.ts'
import { type Saturation, saturate } from '../generator/saturation.ts'
import { median, percentile } from '../generator/timing.ts'
import { type Beside, requestsSeen } from '../rig/beside.ts'
import { watchMachine } from '../rig/machine.ts'
import type { Target } from '../rig/target.ts'
import type { Counted } from './record.ts'

export interface Plan {
  rounds: number
  seconds: number
  /** How often each caller asks for a stream where there are too many. */
  overloadRounds: number
  /** How many the gateway has answered when its memory is looked at for the second time. */
  requests: number
}

export type BenchTargets = Readonly<Record<'upstream' | 'direct' | 'governed' | 'workers', Target>>

interface Processes {
  upstream: Beside
  passThrough: Beside
  gatehouse: Gatehouse
}

export interface Latency {
  p50_ms: number
  p99_ms: number
  /** How late the generator sent, 99th percentile: a floor of what it can see. */
  generator_late_p99_ms: number
  /** The share of all processor time that was used meanwhile, and what of that went to others than the bench. */
  machine_busy: number
  taken_by_others: number
}

export interface Compared {
  direct: Latency
  governed: Latency
}

export interface Traffic {
  requests_per_second: Record<keyof BenchTargets, number>
  /** Answers other than 200, and streams that did not reach their end. */
  failed: number
  latency_at_half: Compared & { requests_per_second: number }
  /** With so many streams held open, each lasting seconds. */
  first_token: Record<`${(typeof streamCounts)[number]}`, Compared>
  /** With the most callers, none of whom pauses between short streams. */
  first_token_overloaded: Compared
  /** Processor time while saturated; the gateway's and control plane's until the events were in the ledger. */
  processor_microseconds_a_request: { direct: number; gateway: number; control_plane: number }
  /** Events that came into the ledger, from the beginning of a burst until the last was there. */
  ingested_per_second: number
  gateway_resident_mebibytes: { before: number; after: number; requests: number }
  counted: Counted
}

const connections = 16
export const streamCounts = [64, 512] as const

/** Runs a measurement on each target in turn, so many times. */
async function alternate<Result>(
  targets: readonly Target[],
  rounds: number,
  measure: (target: Target) => Promise<Result>,
): Promise<(name: string) => Result[]> {
  const results = new Map<string, Result[]>(targets.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) results.get(target.name)?.push(await measure(target))
  }
  return (name) => results.get(name) ?? []
}

/** The same load on each in turn; all rounds of a target are judged together. */
async function compare(
  { direct, governed }: BenchTargets,
  rounds: number,
  load: (target: Target) => Promise<Timed>,
): Promise<Compared & { results: readonly Timed[] }> {
  const watched = async (target: Target) => {
    const machine = watchMachine()
    return { ...(await load(target)), ...machine() }
  }
  const results = await alternate([direct, governed], rounds, watched)
  const of = (name: string): Latency => {
    const times = results(name).flatMap((result) => result.times)
    return {
      p50_ms: percentile(times, 0.5),
      p99_ms: percentile(times, 0.99),
      generator_late_p99_ms: percentile(
        results(name).flatMap(({ late }) => late),
        0.99,
      ),
      machine_busy: median(results(name).map(({ busy }) => busy)),
      taken_by_others: median(results(name).map(({ taken_by_others: taken }) => taken)),
    }
  }
  return { direct: of(direct.name), governed: of(governed.name), results: results(governed.name) }
}

const pair = ({ direct, governed }: Compared): Compared => ({ direct, governed })

export async function measureTraffic(plan: Plan, targets: BenchTargets, processes: Processes): Promise<Traffic> {
  const { gatehouse } = processes
  const all = Object.values(targets)
  for (const target of all) await saturate(target, connections, 1)
  const before = residentBytes(gatehouse.gatewayPid())
  const saturated = await measureSaturation(plan, targets, processes)
  const outcomesBefore = (await settledCount(gatehouse.dataDirectory)).outcomes
  const { rates } = saturated
  const rate = Math.floor(rates.governed / 2)
  const { rounds, seconds, overloadRounds } = plan
  const half = await compare(targets, rounds, (target) => sendAtRate(target, rate, seconds))
  const [few, many] = streamCounts
  const held = (streams: number) => compare(targets, rounds, (target) => holdStreams(target, streams, 2 * seconds))
  const [heldFew, heldMany] = [await held(few), await held(many)]
  const overloaded = await compare(targets, rounds, (target) => overloadStreams(target, many, overloadRounds))
  const singly = [half, heldFew, heldMany, overloaded].flatMap(({ results }) => results)
  const sent = singly.reduce((sum, result) => sum + result.sent, 0)
  const outcomes = (await settledCount(gatehouse.dataDirectory)).outcomes - outcomesBefore
  const requests = await sendUntil(plan, targets.governed, processes)
  return {
    requests_per_second: rates,
    failed: saturated.failed + singly.reduce((sum, { failed }) => sum + failed, 0),
    latency_at_half: { ...pair(half), requests_per_second: rate },
    first_token: { 64: pair(heldFew), 512: pair(heldMany) },
    first_token_overloaded: pair(overloaded),
    processor_microseconds_a_request: saturated.processor,
    ingested_per_second: await measureIngest(plan, targets.governed, gatehouse),
    gateway_resident_mebibytes: {
      before: before / 1024 ** 2,
      after: residentBytes(gatehouse.gatewayPid()) / 1024 ** 2,
      requests,
    },
    counted: { sent, outcomes },
  }
}

async function measureSaturation(
  { rounds, seconds }: Plan,
  targets: BenchTargets,
  { upstream, passThrough, gatehouse }: Processes,
) {
  const look = async () => ({
    direct: { time: processorSeconds(passThrough.pid), requests: await requestsSeen(upstream, 'direct') },
    gateway: processorSeconds(gatehouse.gatewayPid()),
    control_plane: processorSeconds(gatehouse.controlPlanePid()),
    governed: await requestsSeen(upstream, 'governed'),
  })
  await settledCount(gatehouse.dataDirectory)
  const before = await look()
  const results = await alternate(Object.values(targets), rounds, (target) => saturate(target, connections, seconds))
  await settledCount(gatehouse.dataDirectory)
  const after = await look()
  const each = (part: 'gateway' | 'control_plane') =>
    ((after[part] - before[part]) * 1e6) / (after.governed - before.governed)
  const perSecond = (name: string) => median(results(name).map(({ requestsPerSecond }) => requestsPerSecond))
  const failures = (name: string) => results(name).reduce((sum: number, { failed }: Saturation) => sum + failed, 0)
  return {
    rates: {
      upstream: perSecond('upstream'),
      direct: perSecond('direct'),
      governed: perSecond('governed'),
      workers: perSecond('workers'),
    },
    failed: failures('governed') + failures('workers'),
    processor: {
      direct: ((after.direct.time - before.direct.time) * 1e6) / (after.direct.requests - before.direct.requests),
      gateway: each('gateway'),
      control_plane: each('control_plane'),
    },
  }
}

/** Goes on until the gateway has answered as many as the plan says, and gives how many that were. */
async function sendUntil({ requests, seconds }: Plan, target: Target, { upstream }: Processes): Promise<number> {
  for (;;) {
    const seen = await requestsSeen(upstream, 'governed')
    if (seen >= requests) return seen
    await saturate(target, connections, seconds)
  }
}

async function measureIngest({ seconds }: Plan, target: Target, { dataDirectory }: Gatehouse): Promise<number> {
  const before = await settledCount(dataDirectory)
  const startedAt = performance.now()
  await saturate(target, connections, seconds)
  const loadMs = performance.now() - startedAt
  const after = await settledCount(dataDirectory)
  return (after.events - before.events) / ((loadMs + after.waitedMs) / 1000)
}
