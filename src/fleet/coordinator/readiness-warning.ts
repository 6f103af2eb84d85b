/**
 * Names the database that keeps gateways from learning of changes, for the operator. The control plane's own readiness
 * does not depend on it, because cached data still serves (handbook/reference/http.md).
 */
import { hostFaultAdvice, hostFaultOf } from '../../lib/log/host-fault.ts'
import { stallMs } from './stalls.ts'

/** How long a write to the ledger may take before a warning. A retried call ends within it. */
const patienceMs = 10_000

export interface DatabaseDelays {
  /** Time since the state was last read. */
  stateAgeMs: number
  /** The last slow read of the state; null if that was long ago. */
  lastStall: { lastedMs: number; agoMs: number } | null
  /** Time since the first heartbeat that is not written to the ledger. */
  unwrittenMs: number
  /** Why the last write failed; null if it is still running. */
  unwrittenBecause: unknown
  /** Whether the databases are on a server. */
  remote: boolean
}

/** The warning, or null. */
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
