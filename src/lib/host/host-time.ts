/**
 * Milliseconds by a clock of the host that never goes back while it runs. Unlike a process's monotonic clock it can be
 * compared with what a former process on the same host read. Sleep of the host counts.
 */
import type { Clock } from '../clock.ts'
import { readUptime } from './platform.ts'

/** How often the clocks are compared: the monotonic one stands still while the host sleeps. */
const compareEveryMs = 1000

export function hostTime(clock: Clock, uptime: () => number | null = readUptime): () => number {
  let offset = Number.NEGATIVE_INFINITY
  let comparedAt = Number.NEGATIVE_INFINITY
  return () => {
    const monotonic = clock.monotonic()
    if (monotonic - comparedAt >= compareEveryMs) {
      comparedAt = monotonic
      // If the kernel does not report its uptime, every start counts as another run of the host, and nothing is compared.
      offset = Math.max(offset, (uptime() ?? clock.now()) - monotonic)
    }
    return monotonic + offset
  }
}
