/**
 * Which database keeps gateways from learning of changes, for whoever runs the control plane: its own readiness does not
 * depend on it, because what is cached serves on (handbook/reference/http.md).
 */
import { hostFaultAdvice, hostFaultOf } from '../../lib/log/host-fault.ts'
import { stallMs } from './stalls.ts'

/** How long the ledger may take for a write without being spoken of: a call that is tried again ends within it. */
const patienceMs = 10_000

export interface DatabaseDelays {
  /** Since the state was last read. */
  stateAgeMs: number
  /** The last time that reading it took long; null where that is long ago. */
  lastStall: { lastedMs: number; agoMs: number } | null
  /** Since the first heartbeat that is not written to the ledger. */
  unwrittenMs: number
  /** Why the last write failed; null where it still waits. */
  unwrittenBecause: unknown
  /** Whether the databases are those of a server. */
  remote: boolean
}

/** In words, or null. */
export function readinessWarning(delays: DatabaseDelays): string | null {
  const { stateAgeMs, lastStall, unwrittenMs, unwrittenBecause, remote } = delays
  if (stateAgeMs > stallMs) return `The state database has not been read for ${seconds(stateAgeMs)}`
  if (unwrittenMs > patienceMs) {
    const fault = hostFaultOf(unwrittenBecause)
    const server = remote
      ? 'Where it can be read, restart its server'
      : String(unwrittenBecause ?? 'It does not answer')
    const why = fault === null ? server : hostFaultAdvice[fault]
    return `The ledger database has taken no write for ${seconds(unwrittenMs)}. ${why}`
  }
  if (lastStall === null) return null
  return `The state database did not answer for ${seconds(lastStall.lastedMs)}, until ${seconds(lastStall.agoMs)} ago: changes reached gateways late`
}

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1000)} s`
