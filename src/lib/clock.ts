/** Time, passed in as a dependency so that a test can control it. */
export interface Clock {
  /** Wall time, milliseconds since the epoch. */
  now(): number
  /** Milliseconds that never go back; only differences are meaningful. */
  monotonic(): number
}

export const systemClock: Clock = { now: Date.now, monotonic: () => performance.now() }

/** RFC 3339 in UTC with milliseconds, the one form of time outside (handbook/reference/http.md). */
export function timestamp(milliseconds: number): string {
  // The text is cached for one tick, because making it costs more than the rest of an event's frame.
  if (milliseconds !== lastMilliseconds) {
    lastText = new Date(milliseconds).toISOString()
    lastMilliseconds = milliseconds
  }
  return lastText
}

let lastMilliseconds = Number.NaN
let lastText = ''
