/**
 * Milliseconds to wait before try number `attempt` (from 0): doubling from 100 ms to 10 s, with full jitter above half.
 */
export function backoff(attempt: number, random: () => number): number {
  const most = Math.min(10_000, 100 * 2 ** attempt)
  return most / 2 + (most / 2) * random()
}
