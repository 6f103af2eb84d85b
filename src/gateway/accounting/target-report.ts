/** What heartbeats say of targets. An error is a reason code and a status, so no text of a provider can hold a secret. */
import { reportedTargets, type TargetHealth } from '../../fleet/protocol/wire.ts'
import { timestamp } from '../../lib/clock.ts'
import type { TargetReading } from './target-metrics.ts'

/** Those called most, as many as a heartbeat may have. */
export function reportTargets(readings: Iterable<TargetReading>): TargetHealth[] {
  const called = [...readings].filter(({ state }) => state.calls + state.inFlight > 0)
  called.sort((one, other) => other.state.calls - one.state.calls)
  return called.slice(0, reportedTargets).map(({ state, isOpen, restingKeys }) => ({
    provider: state.providerName,
    model: state.model,
    upstream_model: state.upstreamModel,
    calls: state.calls,
    errors: state.errors,
    error_ratio: state.errorRate,
    in_flight: state.inFlight,
    first_byte_p50_ms: Number.isNaN(state.p50) ? null : state.p50,
    first_byte_p95_ms: Number.isNaN(state.p95) ? null : state.p95,
    circuit_open: isOpen,
    keys: state.keyCount,
    keys_resting: restingKeys,
    last_error: state.lastError && { ...state.lastError, at: timestamp(state.lastError.at) },
  }))
}
