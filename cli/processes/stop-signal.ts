/**
 * Told to stop: the first signal asks, one that comes later insists. What follows within a second is the same request:
 * a terminal signals the whole group and the program between passes it on once more.
 */
import type { Clock } from '../../src/lib/clock.ts'

const sameRequestMilliseconds = 1000

/** A handler for stop signals; `asked` runs once, `insisted` for each signal after the first second. */
export function stopSignal(clock: Clock, asked: () => void, insisted: () => void): () => void {
  let firstAt: number | null = null
  return () => {
    if (firstAt === null) {
      firstAt = clock.monotonic()
      asked()
    } else if (clock.monotonic() - firstAt > sameRequestMilliseconds) insisted()
  }
}
