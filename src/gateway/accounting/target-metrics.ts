/**
 * The metrics of targets. Their labels are a provider's name and a model's id in the catalog, `*` for all models that
 * the catalog does not list: operators choose both, and the number of targets in memory is bounded.
 */
import { Gauge, type Registry } from 'prom-client'
import type { TargetState } from '../upstream/targets/target-state.ts'

/** A target as it is now. */
export interface TargetReading {
  readonly state: TargetState
  readonly isOpen: boolean
  readonly restingKeys: number
}

type Row = readonly [
  name: string,
  help: string,
  aggregator: 'sum' | 'max' | 'average',
  value: (reading: TargetReading) => number,
]

const seconds = (milliseconds: number): number => (Number.isNaN(milliseconds) ? 0 : milliseconds / 1000)

const rows: readonly Row[] = [
  ['gatehouse_target_calls', 'Calls to a target since the start', 'sum', ({ state }) => state.calls],
  ['gatehouse_target_errors', 'Calls to a target that failed since the start', 'sum', ({ state }) => state.errors],
  ['gatehouse_target_error_ratio', 'Share of the last 64 calls that failed', 'average', ({ state }) => state.errorRate],
  ['gatehouse_target_in_flight', 'Calls to a target in flight', 'sum', ({ state }) => state.inFlight],
  [
    'gatehouse_target_first_byte_p50_seconds',
    'Median time to the first byte of the last 64 calls; 0 without any',
    'average',
    ({ state }) => seconds(state.p50),
  ],
  [
    'gatehouse_target_first_byte_p95_seconds',
    '95th percentile of the time to the first byte of the last 64 calls; 0 without any',
    'max',
    ({ state }) => seconds(state.p95),
  ],
  ['gatehouse_target_circuit_open', '1 while the circuit of a target is open', 'max', ({ isOpen }) => (isOpen ? 1 : 0)],
  [
    'gatehouse_target_keys_resting',
    "Keys of the target's provider that are passed over",
    'max',
    ({ restingKeys }) => restingKeys,
  ],
]

/** Makes the gauges; the result sets them. */
export function targetMetrics(registers: Registry[]): (readings: Iterable<TargetReading>) => void {
  const gauges = rows.map(([name, help, aggregator, value]) => ({
    gauge: new Gauge({ name, help, labelNames: ['provider', 'model'] as const, registers, aggregator }),
    value,
  }))
  return (readings) => {
    for (const { gauge } of gauges) gauge.reset()
    for (const reading of readings) {
      const { providerName: provider, model } = reading.state
      for (const { gauge, value } of gauges) gauge.set({ provider, model }, value(reading))
    }
  }
}
