/**
 * A matcher for streams that reports its failures, and then finds all of the rest or nothing, as its policy's setting
 * says.
 */
import type { Found, TextFollower, TextMatcher } from './text-matcher.ts'

const brokenEntry = 'broken'

/** `broken` is called once for each text that fails, and returns whether the rest of it may pass. */
export const guardedMatcher = (matcher: TextMatcher, broken: (error: unknown) => boolean): TextMatcher => ({
  mayMatch: (text) => matcher.mayMatch(text),
  matches: (text) => matcher.matches(text),
  follow: (work) => new GuardedFollower(matcher.follow(work), broken),
})

class GuardedFollower implements TextFollower {
  readonly #follower: TextFollower
  readonly #broken: (error: unknown) => boolean
  #isBroken = false
  #read = 0
  #safe = 0

  constructor(follower: TextFollower, broken: (error: unknown) => boolean) {
    this.#follower = follower
    this.#broken = broken
  }

  push(piece: string, last: boolean): { matches: readonly Found[]; safe: number } {
    this.#read += piece.length
    if (this.#isBroken) return { matches: [], safe: this.#read }
    try {
      const told = this.#follower.push(piece, last)
      this.#safe = told.safe
      return told
    } catch (error) {
      this.#isBroken = true
      if (this.#broken(error)) return { matches: [], safe: this.#read }
      const [start, end] = [this.#safe, Number.POSITIVE_INFINITY]
      return { matches: [{ start, end, label: 'TEXT', entry: brokenEntry, endless: true }], safe: start }
    }
  }
}
