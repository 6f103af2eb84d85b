/**
 * What one token may send, by this process: 120 exports and 16 MiB in each minute that begins with its first export.
 * Exporters send every few seconds to every minute. The limit keeps one client from filling the collector; limits of
 * requests and money are for models, and telemetry takes nothing from them.
 */
import { LRUCache } from 'lru-cache'
import { Failure } from '../../failure.ts'

export const mostExports = 120
export const mostBytes = 16 * 1024 * 1024
const minute = 60_000
/** Tokens that send within the same minute; of more, the one that sent the longest ago begins anew. */
const tokens = 10_000

interface Minute {
  startedAt: number
  exports: number
  bytes: number
}

export class IntakeLimits {
  readonly #minutes = new LRUCache<string, Minute>({ max: tokens })

  /** Counts an export. `now` is of the monotonic clock. Throws `telemetry_limited` with the wait in seconds. */
  take(tokenId: string, bytes: number, now: number): void {
    const known = this.#minutes.get(tokenId)
    const current =
      known !== undefined && now - known.startedAt < minute ? known : { startedAt: now, exports: 0, bytes: 0 }
    if (current.exports + 1 > mostExports || current.bytes + bytes > mostBytes) {
      throw new Failure('telemetry_limited', { retryAfter: Math.ceil((current.startedAt + minute - now) / 1000) })
    }
    current.exports += 1
    current.bytes += bytes
    this.#minutes.set(tokenId, current)
  }
}
