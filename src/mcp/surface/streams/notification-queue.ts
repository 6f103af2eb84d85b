/**
 * Delivers the notifications of one server to one caller in order. Each waits until policies, perhaps a webhook, have
 * inspected the one before. The queue is bounded in number and size; what exceeds it is dropped, as the protocol allows
 * for notifications. Other servers of the session do not wait for it.
 */
import type { Json } from '../../connection.ts'

const mostWaiting = 256
/** The limit for what waits behind the first. */
const mostBytes = 1024 * 1024

export class NotificationQueue {
  #pending: Promise<void> = Promise.resolve()
  #waiting = 0
  #bytes = 0

  /** Queues a notification; false when it is dropped. Throws `RangeError` when it is nested too deep to measure. */
  add(params: Json, send: () => Promise<void>): boolean {
    // Usually nothing waits, and the size is not needed.
    const bytes = this.#waiting === 0 ? 0 : Buffer.byteLength(JSON.stringify(params))
    if (this.#waiting >= mostWaiting || this.#bytes + bytes > mostBytes) return false
    this.#waiting += 1
    this.#bytes += bytes
    const ended = () => {
      this.#waiting -= 1
      this.#bytes -= bytes
    }
    // A notification that fails blocks neither the next nor the answer behind it.
    this.#pending = this.#pending.then(send).then(ended, ended)
    return true
  }

  /** Resolves when all queued notifications have been sent. */
  flushed(): Promise<void> {
    return this.#pending
  }
}
