/** Everything that one run of the bench has measured: what its tables print and bench.json holds. */
import type { Attribution } from '../profile/attribution.ts'
import type { Syscalls } from '../profile/syscalls.ts'
import type { Machine } from '../rig/machine.ts'
import type { AtRate, Cost } from './cost.ts'
import type { FrameCost } from './frames.ts'
import type { RecordCost } from './record.ts'
import type { HeldStreams } from './streams.ts'
import type { Starts, TokenCost } from './tokens.ts'

/** By the name of the contender, the bare proxy first. */
export type ByName<Value> = Readonly<Record<string, Value>>

export interface Where {
  profiler: string
  attributions: ByName<Attribution>
  /** The functions of the gateway, everything on, that took most: microseconds a request. */
  functions: readonly { name: string; time: number }[]
  /** Files with flame graphs. */
  files: readonly string[]
}

export interface Memory {
  before_megabytes: number
  requests: number
  after_requests_megabytes: number
  held_streams: number
  after_streams_megabytes: number
}

export interface Measured {
  saturated: ByName<Cost>
  at_rate: AtRate
  frames: ByName<FrameCost>
  held: readonly HeldStreams[]
  memory: Memory
  /** Objects that a request makes. */
  allocations: ByName<number>
  starts: Starts
  /** With few tokens, and with many. */
  tokens: readonly TokenCost[]
  record: RecordCost
  /** Null without `--syscalls`, and without `--profile`. */
  syscalls: ByName<Syscalls> | null
  where: Where | null
  /** What could not be measured, and why. */
  skipped: readonly string[]
  machine: Machine
}

/** Names of contenders, which tables and goals look results up by. */
export const names = {
  bare: 'bare proxy',
  nginx: 'nginx',
  plain: 'plain',
  everything: 'everything on',
  inspected: '400 terms on the answer',
} as const

export const of = <Value>(found: ByName<Value>, name: string): Value => {
  const value = found[name]
  if (value === undefined) throw new RangeError(`The bench has not measured ${name}`)
  return value
}
