/**
 * Which database keeps gateways from learning of changes, for whoever runs the control plane: its own readiness does not
 * depend on it, because what is cached serves on (contract section 2).
 */
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
}

/** In words, or null. */
export function troubleOf({ stateAgeMs, lastStall, unwrittenMs }: DatabaseDelays): string | null {
  if (stateAgeMs > stallMs) return `The state database has not been read for ${seconds(stateAgeMs)}`
  if (unwrittenMs > patienceMs) {
    return `The ledger database has taken no write for ${seconds(unwrittenMs)}; where it can be read, restart its server`
  }
  if (lastStall === null) return null
  return `The state database did not answer for ${seconds(lastStall.lastedMs)}, until ${seconds(lastStall.agoMs)} ago: changes reached gateways late`
}

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1000)} s`
