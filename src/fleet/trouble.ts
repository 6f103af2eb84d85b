/**
 * Which database keeps gateways from having fresh news, for whoever runs the control plane: its own readiness does not
 * depend on it, because what is cached serves on (contract section 2).
 */
import { hostFaultAdvice, hostFaultOf } from '../lib/host-fault.ts'

/** What a database may take without being spoken of: a call that is tried again ends within it. */
const patienceMs = 10_000

interface Trouble {
  /** Since the state was read. */
  stateAgeMs: number
  /** Since the first beat that is not written. */
  unwrittenMs: number
  /** What the last write failed of; null where it still waits. */
  unwrittenBecause: unknown
  /** Whether the databases are those of a server. */
  remote: boolean
}

/** In words, or null. */
export function troubleOf({ stateAgeMs, unwrittenMs, unwrittenBecause, remote }: Trouble): string | null {
  if (stateAgeMs > patienceMs) return `The state database has not been read for ${seconds(stateAgeMs)}`
  if (unwrittenMs <= patienceMs) return null
  const fault = hostFaultOf(unwrittenBecause)
  const server = remote ? 'Where it can be read, restart its server' : String(unwrittenBecause ?? 'It does not answer')
  const why = fault === null ? server : hostFaultAdvice[fault]
  return `The ledger database has taken no write for ${seconds(unwrittenMs)}. ${why}`
}

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1000)} s`
