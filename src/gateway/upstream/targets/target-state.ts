/**
 * What one gateway process knows of one target, a model at a provider: the calls in flight, the results of the last
 * calls, and which of the provider's keys to pass over. It is in memory only. Percentiles are those of the last
 * `sampleCount` calls, computed anew after every `refreshAfter` calls.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Provider } from '../../../providers/provider.ts'

/** How many calls the error rate and the percentiles are taken from. */
export const sampleCount = 64
const refreshAfter = 8
/** How long a key is passed over that the provider refused with 401 or 403: an operator must act first. */
const refusedMilliseconds = 60_000
/** How long a key is passed over after a 429 that does not say how long. */
const limitedMilliseconds = 5_000
/** The shortest rest, so that a refused request never meets the same key again at once, and the longest one. */
const shortestRest = 1_000
const longestRest = 300_000

interface KeyState {
  inFlight: number
  /** The monotonic time until which the key is not used while there is another: its provider refused it. */
  refusedUntil: number
  /** The same, because its rate limit is nearly used up. Such a key comes before one that was refused. */
  lowUntil: number
}

export interface TargetError {
  /** Milliseconds since the epoch. */
  readonly at: number
  /** A reason code. */
  readonly reason: string
  /** The HTTP status; null if there was no answer. */
  readonly status: number | null
}

/** What a call brought. */
export interface TargetResult {
  /** The number of the key; the first if absent. */
  readonly key?: number
  readonly reason: string
  readonly status: number | null
  /** Milliseconds until the response headers; null if none came. */
  readonly firstByteMs: number | null
}

export class TargetState {
  /** The record that its keys belong to. */
  provider: Provider
  readonly providerName: string
  /** The catalog's id; `*` stands for all models that the catalog does not list. */
  readonly model: string
  readonly upstreamModel: string
  /** Identifies the target in the choice for a session: the same number on every host. */
  readonly seed: number
  inFlight = 0
  calls = 0
  errors = 0
  lastError: TargetError | null = null
  /** The monotonic time of the last choice or result, by which a target that is never chosen is measured again. */
  lastUsed = Number.NEGATIVE_INFINITY
  /** Picodollars for a token in and a token out, as of `costAt`; infinite if unknown. */
  cost = Number.POSITIVE_INFINITY
  costAt = Number.NEGATIVE_INFINITY
  #keys: KeyState[]
  #nextKey = 0
  /** Milliseconds to the first byte; NaN for a call that failed. */
  readonly #samples = new Float64Array(sampleCount)
  #sampled = 0
  #refreshAt = 0
  #p50 = Number.NaN
  #p95 = Number.NaN

  constructor(
    provider: Provider,
    { model, upstreamModel, seed }: { model: string; upstreamModel: string; seed: number },
  ) {
    this.provider = provider
    this.providerName = provider.name
    this.model = model
    this.upstreamModel = upstreamModel
    this.seed = seed
    this.#keys = newKeys(provider)
  }

  /** Forgets what is known of the keys and of the price when the provider's record was changed. */
  renew(provider: Provider): void {
    if (provider === this.provider) return
    this.provider = provider
    this.#keys = newKeys(provider)
    this.costAt = Number.NEGATIVE_INFINITY
  }

  get keyCount(): number {
    return this.#keys.length
  }

  /** The number of a key to call with: each in turn, or for a session always the same while that key is in use. */
  chooseKey(session: number | null, now: number): number {
    const keys = this.#keys
    const count = keys.length
    if (count === 1) return 0
    const start = (session === null ? this.#nextKey++ : session) % count
    let best = start
    let bestUntil = Number.POSITIVE_INFINITY
    for (let step = 0; step < count; step++) {
      const index = (start + step) % count
      const key = keys[index]
      if (key === undefined) break
      if (now >= key.refusedUntil && now >= key.lowUntil) return index
      // A key that is only low comes before a refused one, and then the one that is usable first.
      const until = now < key.refusedUntil ? key.refusedUntil + longestRest : key.lowUntil
      if (until >= bestUntil) continue
      best = index
      bestUntil = until
    }
    return best
  }

  /** Whether some key was not refused lately. */
  hasUsableKey(now: number): boolean {
    return this.#keys.some(({ refusedUntil }) => now >= refusedUntil)
  }

  /** Whether some key was neither refused lately nor is near its rate limit. */
  hasFreeKey(now: number): boolean {
    return this.#keys.some(({ refusedUntil, lowUntil }) => now >= refusedUntil && now >= lowUntil)
  }

  /** How many keys are passed over now. */
  restingKeys(now: number): number {
    return this.#keys.filter(({ refusedUntil, lowUntil }) => now < refusedUntil || now < lowUntil).length
  }

  keyInFlight(key: number): number {
    return this.#keys[key]?.inFlight ?? 0
  }

  /** The provider refused a key with 401, 403 or 429; `after` is the wait in milliseconds that it asks for, if any. */
  refuseKey(key: number, now: number, status: number, after: number | null): void {
    const state = this.#keys[key]
    if (state === undefined) return
    const rest = status === 429 ? (after ?? limitedMilliseconds) : refusedMilliseconds
    state.refusedUntil = Math.max(state.refusedUntil, now + Math.min(Math.max(rest, shortestRest), longestRest))
  }

  /** A key has nearly used up its rate limit, which is full again after so many milliseconds. */
  lowerKey(key: number, now: number, milliseconds: number): void {
    const state = this.#keys[key]
    if (state !== undefined) state.lowUntil = Math.max(state.lowUntil, now + Math.min(milliseconds, longestRest))
  }

  begin(key: number, now: number): void {
    this.inFlight += 1
    this.lastUsed = now
    const state = this.#keys[key]
    if (state !== undefined) state.inFlight += 1
  }

  end(result: TargetResult, monotonic: number, clock: Pick<Clock, 'now'>): void {
    this.inFlight -= 1
    this.lastUsed = monotonic
    const state = this.#keys[result.key ?? 0]
    // Keys that were reset meanwhile count from zero.
    if (state !== undefined && state.inFlight > 0) state.inFlight -= 1
    const failed = isTargetFault(result)
    if (!failed && result.firstByteMs === null) return
    this.calls += 1
    this.#samples[this.#sampled % sampleCount] = failed ? Number.NaN : (result.firstByteMs ?? Number.NaN)
    this.#sampled += 1
    if (!failed) return
    this.errors += 1
    this.lastError = { at: clock.now(), reason: result.reason, status: result.status }
  }

  /** Milliseconds to the first byte, of the last calls that succeeded; NaN if there are none. */
  get p50(): number {
    this.#refresh()
    return this.#p50
  }

  get p95(): number {
    this.#refresh()
    return this.#p95
  }

  /** The share of the last calls that failed, from 0 to 1. */
  get errorRate(): number {
    const count = Math.min(this.#sampled, sampleCount)
    let failed = 0
    for (let index = 0; index < count; index++) if (Number.isNaN(this.#samples[index])) failed += 1
    return count === 0 ? 0 : failed / count
  }

  #refresh(): void {
    if (this.#sampled < this.#refreshAt) return
    const count = Math.min(this.#sampled, sampleCount)
    // NaN sorts to the end.
    const sorted = this.#samples.slice(0, count).sort()
    let succeeded = count
    while (succeeded > 0 && Number.isNaN(sorted[succeeded - 1])) succeeded -= 1
    this.#p50 = sorted[Math.ceil(succeeded * 0.5) - 1] ?? Number.NaN
    this.#p95 = sorted[Math.ceil(succeeded * 0.95) - 1] ?? Number.NaN
    this.#refreshAt = this.#sampled + (this.#sampled < refreshAfter ? 1 : refreshAfter)
  }
}

const newKeys = ({ keys }: Provider): KeyState[] =>
  Array.from({ length: keys?.length ?? 1 }, () => ({ inFlight: 0, refusedUntil: 0, lowUntil: 0 }))

/** Statuses with which a provider refuses the key, not the request. */
export const refusesKey = (status: number | null): boolean => status === 401 || status === 403 || status === 429

/** Whether the provider failed: not the caller with a wrong request, nor one that left, nor a policy. */
const isTargetFault = ({ reason, status }: TargetResult): boolean =>
  reason.startsWith('provider.') &&
  (status === null || status < 400 || status >= 500 || status === 408 || refusesKey(status))
