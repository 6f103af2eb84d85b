/**
 * Which database keeps gateways from having fresh news, for whoever runs the control plane: its own readiness does not
 * depend on it, because what is cached serves on (contract section 2).
 */

/** What a database may take without being spoken of: a call that is tried again ends within it. */
const patienceMs = 10_000

/** In words, or null. `stateAgeMs`: since the state was read; `unwrittenMs`: since the first beat that is not written. */
export function troubleOf({ stateAgeMs, unwrittenMs }: { stateAgeMs: number; unwrittenMs: number }): string | null {
  if (stateAgeMs > patienceMs) return `The state database has not been read for ${seconds(stateAgeMs)}`
  if (unwrittenMs <= patienceMs) return null
  return `The ledger database has taken no write for ${seconds(unwrittenMs)}; where it can be read, restart its server`
}

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1000)} s`
