/**
 * Stalls of the state database, when it did not answer for a while and then went on, as `sqld` does while it compacts
 * its log. They are over before an operator can look, so they are counted, and the last one is reported for a few
 * minutes.
 */

/** The state is read every second: a longer gap between two reads is a stall. */
export const stallMs = 3000
const spokenOfMs = 5 * 60_000

export class Stalls {
  count = 0
  totalMs = 0
  #last: { lasted: number; endedAt: number } | null = null

  /** The state was read at `now`, `gapMs` after the read before. */
  readAfter(gapMs: number, now: number): void {
    if (!Number.isFinite(gapMs) || gapMs <= stallMs) return
    this.count += 1
    this.totalMs += gapMs
    this.#last = { lasted: gapMs, endedAt: now }
  }

  /** The last stall and how long ago it ended, while it is reported; null otherwise. */
  recent(now: number): { lastedMs: number; agoMs: number } | null {
    if (this.#last === null || now - this.#last.endedAt > spokenOfMs) return null
    return { lastedMs: this.#last.lasted, agoMs: now - this.#last.endedAt }
  }
}
