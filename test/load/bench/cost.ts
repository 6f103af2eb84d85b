/** What a load costs each contender: processor time of its processes for each request, and how fast it is answered. */
import { settle } from '../events/ledger-count.ts'
import { sendAtRate } from '../generator/open-loop.ts'
import { saturate } from '../generator/saturation.ts'
import { percentile } from '../generator/timing.ts'
import { httpThread, lookAtThreads, spentSince } from '../rig/threads.ts'
import type { Contender } from './contenders.ts'

/** Sums over all rounds. Times are in microseconds. */
export interface Load {
  requests: number
  failed: number
  seconds: number
  main: number
  others: number
  /** Of the others: the thread that speaks with the provider. */
  http: number
  controlPlane: number | null
  switches: number
}

/** The same for one request. */
export interface Cost {
  requests: number
  failed: number
  requests_per_second: number
  /** Microseconds of processor time of the process or processes that carry requests. */
  gateway: number
  main_thread: number
  other_threads: number
  http_client: number
  control_plane: number | null
  context_switches: number
  ratio_to_bare: number
}

export interface Latency {
  p50_ms: number
  p99_ms: number
  /** How late the generator sent, 99th percentile: a floor of what it can see. */
  generator_late_p99_ms: number
}

export const connections = 16

interface Sent {
  requests: number
  failed: number
  seconds: number
}

/**
 * What the contender's processes take for a load, until its last event is in the ledger: none may be on its way before.
 */
export async function spentFor<Result extends Sent>(
  { pids, record }: Contender,
  load: () => Promise<Result>,
): Promise<Result & Load> {
  const recorder = record === undefined ? [] : [record.pid]
  const [before, recorderBefore] = [lookAtThreads(pids), lookAtThreads(recorder)]
  const sent = await load()
  if (record) await settle(record.dataDirectory)
  const { main, others, switches, byThread } = spentSince(before, pids)
  const http = byThread[httpThread]?.total ?? 0
  const controlPlane = record ? spentSince(recorderBefore, recorder).total : null
  return { ...sent, main, others, http, switches, controlPlane }
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)

/** All rounds of a contender are judged together. */
export function costOf(loads: readonly Load[], bareMicroseconds: number | null): Cost {
  const requests = sum(loads.map((load) => load.requests))
  const each = (of: (load: Load) => number) => sum(loads.map(of)) / requests
  const gateway = each(({ main, others }) => main + others)
  return {
    requests,
    failed: sum(loads.map(({ failed }) => failed)),
    requests_per_second: requests / sum(loads.map(({ seconds }) => seconds)),
    gateway,
    main_thread: each(({ main }) => main),
    other_threads: each(({ others }) => others),
    http_client: each(({ http }) => http),
    control_plane: loads.some(({ controlPlane }) => controlPlane === null)
      ? null
      : each(({ controlPlane }) => controlPlane ?? 0),
    context_switches: each(({ switches }) => switches),
    ratio_to_bare: gateway / (bareMicroseconds ?? gateway),
  }
}

/** Runs a load on each contender in turn, so many times: a slow minute of the machine falls on all alike. */
export async function inTurn<Result>(
  contenders: readonly Contender[],
  rounds: number,
  run: (contender: Contender) => Promise<Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) results.get(contender.name)?.push(await run(contender))
  }
  return results
}

/** The costs by name; the first contender is the one that the others are compared with. */
export function costsOf(loads: ReadonlyMap<string, readonly Load[]>): Record<string, Cost> {
  const [bare = []] = loads.values()
  const { gateway } = costOf(bare, null)
  return Object.fromEntries([...loads].map(([name, found]) => [name, costOf(found, gateway)]))
}

export async function measureSaturation(
  contenders: readonly Contender[],
  rounds: number,
  seconds: number,
): Promise<Record<string, Cost>> {
  const load = (contender: Contender) => spentFor(contender, () => saturate(contender.target, connections, seconds))
  return costsOf(await inTurn(contenders, rounds, load))
}

export interface AtRate {
  rate: number
  costs: Record<string, Cost & Latency>
}

/** The same number of requests a second to each: one that all of them can hold. */
export async function measureAtRate(
  contenders: readonly Contender[],
  rate: number,
  rounds: number,
  seconds: number,
): Promise<AtRate> {
  const loads = await inTurn(contenders, rounds, (contender) =>
    spentFor(contender, async () => {
      const { sent, failed, ...timed } = await sendAtRate(contender.target, rate, seconds)
      return { requests: sent - failed, failed, seconds, ...timed }
    }),
  )
  const costs = costsOf(loads)
  const withLatency = Object.entries(costs).map(([name, cost]) => {
    const found = loads.get(name) ?? []
    return [name, { ...cost, ...latencyOf(found) }] as const
  })
  return { rate, costs: Object.fromEntries(withLatency) }
}

export function latencyOf(found: readonly { times: readonly number[]; late: readonly number[] }[]): Latency {
  const times = found.flatMap((timed) => timed.times)
  const late = found.flatMap((timed) => timed.late)
  return {
    p50_ms: percentile(times, 0.5),
    p99_ms: percentile(times, 0.99),
    generator_late_p99_ms: percentile(late, 0.99),
  }
}
