/**
 * What one server says to one caller that is no answer, in the order in which it was said. Each waits until policies have
 * looked at the one before it, a webhook perhaps, so that what waits is bounded in number and size: what comes beyond is
 * let fall, as the protocol allows for whatever has no answer. Other servers of the session do not wait for it.
 */
import type { Json } from '../connection.ts'

const mostWaiting = 256
/** Of what waits behind the first. */
const mostBytes = 1024 * 1024

export class Notices {
  #said: Promise<void> = Promise.resolve()
  #waiting = 0
  #bytes = 0

  /** Says something in its turn; false where it is let fall. Throws `RangeError` where it is nested too deep to measure. */
  add(params: Json, say: () => Promise<void>): boolean {
    // Most find nobody waiting, and are not measured.
    const bytes = this.#waiting === 0 ? 0 : Buffer.byteLength(JSON.stringify(params))
    if (this.#waiting >= mostWaiting || this.#bytes + bytes > mostBytes) return false
    this.#waiting += 1
    this.#bytes += bytes
    const ended = () => {
      this.#waiting -= 1
      this.#bytes -= bytes
    }
    // What cannot be said keeps nothing else from being said, nor the answer behind it from leaving.
    this.#said = this.#said.then(say).then(ended, ended)
    return true
  }

  /** Resolves when what was said so far is said. */
  said(): Promise<void> {
    return this.#said
  }
}
