/**
 * The figures that are to be reached, each with what it is measured by. The bench prints all of them with its results.
 */
import { framesOfStream } from './frames.ts'
import { type Measured, names, of } from './measured.ts'

export interface Goal {
  figure: string
  unit: '×' | 'µs' | 'ms' | 'MB' | ''
  /** The figure may be at most, or must be at least, so much. */
  most?: number
  least?: number
  /** Null where it was not measured. */
  measure(measured: Measured): number | null
}

const { bare, plain, everything, inspected } = names
const outcomesOnce = ({
  record: { requests_sent: sent, outcomes_recorded: outcomes, exchanges_recorded: once },
}: Measured) => Math.abs(outcomes - sent) + Math.abs(outcomes - once)
const failures = ({ saturated, at_rate: { costs }, frames, held }: Measured): number =>
  [...Object.values(saturated), ...Object.values(costs), ...Object.values(frames), ...held].reduce(
    (sum, { failed }) => sum + failed,
    0,
  )
const added = ({ at_rate: { costs } }: Measured, share: 'p50_ms' | 'p99_ms') =>
  of(costs, everything)[share] - of(costs, bare)[share]
const syscallRatio = ({ syscalls }: Measured): number | null => {
  if (syscalls === null) return null
  const [direct, governed] = [of(syscalls, bare), of(syscalls, everything)]
  if (direct.by_perf !== null && governed.by_perf !== null) return governed.by_perf / direct.by_perf
  if (direct.by_strace !== null && governed.by_strace !== null) return governed.by_strace / direct.by_strace
  return null
}
const heldMost = ({ held, memory }: Measured) =>
  held.find(({ name }) => name.startsWith(`${memory.held_streams} streams`))?.first_text ?? null

export const goals: readonly Goal[] = [
  {
    figure: 'gateway, one token, no policy: processor time to the bare proxy',
    unit: '×',
    most: 1.8,
    measure: ({ saturated }) => of(saturated, plain).ratio_to_bare,
  },
  {
    figure: 'gateway, everything on',
    unit: '×',
    most: 2.3,
    measure: ({ saturated }) => of(saturated, everything).ratio_to_bare,
  },
  {
    figure: `frame of a stream of ${framesOfStream}, no policy on the answer, to the bare relay`,
    unit: '×',
    most: 1.5,
    measure: ({ frames }) => of(frames, plain).ratio_to_bare,
  },
  {
    figure: 'the same with 400 terms on the answer',
    unit: '×',
    most: 2.5,
    measure: ({ frames }) => of(frames, inspected).ratio_to_bare,
  },
  {
    figure: 'control plane, a request',
    unit: 'µs',
    most: 20,
    measure: ({ saturated }) => of(saturated, everything).control_plane,
  },
  {
    figure: 'throughput, everything on, to the bare proxy',
    unit: '×',
    least: 0.5,
    measure: ({ saturated }) => of(saturated, everything).requests_per_second / of(saturated, bare).requests_per_second,
  },
  { figure: 'latency added at half of that load, p50', unit: 'ms', most: 0.3, measure: (all) => added(all, 'p50_ms') },
  { figure: 'latency added at half of that load, p99', unit: 'ms', most: 2, measure: (all) => added(all, 'p99_ms') },
  { figure: 'calls of the kernel, to the bare proxy', unit: '×', most: 1.5, measure: syscallRatio },
  {
    figure: 'context switches, to the bare proxy',
    unit: '×',
    most: 1.5,
    measure: ({ saturated }) => of(saturated, everything).context_switches / of(saturated, bare).context_switches,
  },
  {
    figure: 'objects made for a request, everything on',
    unit: '',
    most: 200,
    measure: ({ allocations }) => of(allocations, everything),
  },
  {
    figure: 'memory of the gateway after many requests',
    unit: 'MB',
    most: 150,
    measure: ({ memory }) => memory.after_requests_megabytes,
  },
  {
    figure: 'memory of the gateway after streams were held',
    unit: 'MB',
    most: 150,
    measure: ({ memory }) => memory.after_streams_megabytes,
  },
  { figure: 'ready, first start', unit: 'ms', most: 300, measure: ({ starts }) => starts.first_ms },
  { figure: 'ready, second start', unit: 'ms', most: 300, measure: ({ starts }) => starts.second_ms },
  {
    figure: 'first text among held streams, p99 added',
    unit: 'ms',
    most: 1,
    measure(all) {
      const found = heldMost(all)
      return found && of(found, everything).p99_ms - of(found, bare).p99_ms
    },
  },
  {
    figure: 'first request of a token among many, to one among few',
    unit: '×',
    most: 1.2,
    measure({ tokens }) {
      const [few, many] = [tokens.at(0), tokens.at(-1)]
      return few && many ? many.first_use_ms / few.first_use_ms : null
    },
  },
  { figure: 'revocation, p99', unit: 'ms', most: 100, measure: ({ record }) => record.revocation_ms.p99 },
  { figure: 'requests and streams that failed', unit: '', most: 0, measure: failures },
  { figure: 'outcomes that are missing from the ledger, or twice in it', unit: '', most: 0, measure: outcomesOnce },
]

export type Reached = 'yes' | 'NO' | 'not measured'

/** A figure that is no number is not reached. */
export function reached({ most, least }: Goal, found: number | null): Reached {
  if (found === null) return 'not measured'
  const isReached = found <= (most ?? Number.POSITIVE_INFINITY) && found >= (least ?? Number.NEGATIVE_INFINITY)
  return isReached ? 'yes' : 'NO'
}
