/**
 * The targets that this gateway process has called: their state, the order in which those of one model are tried, and
 * the keys to call them with. A model with one target and a provider with one key are only measured; nothing is chosen.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../lib/clock.ts'
import type { PriceBook } from '../../../providers/prices/price-book.ts'
import type { Provider } from '../../../providers/provider.ts'
import type { ResolvedModel } from '../../exchange.ts'
import type { Circuits } from '../circuit.ts'
import { type RetryAdvice, retryAdvice } from '../retry.ts'
import { type Candidate, hashOf, orderTargets } from './order-targets.ts'
import { restByRateLimits } from './rate-limit-headers.ts'
import { refusesKey, TargetState } from './target-state.ts'

/** The most targets that are measured; of more, those used longest ago are forgotten. */
const targetsInMemory = 2000
/** How long a looked-up price orders targets. */
const costMilliseconds = 60_000

interface TargetsOptions {
  readonly prices: PriceBook
  readonly circuits: Circuits
  readonly clock: Clock
  readonly random: () => number
}

export class Targets {
  readonly #byName = new LRUCache<string, TargetState>({ max: targetsInMemory })
  readonly #byPath = new WeakMap<ResolvedModel, TargetState>()
  readonly #unlisted = new WeakMap<Provider, TargetState>()
  readonly #options: TargetsOptions

  constructor(options: TargetsOptions) {
    this.#options = options
  }

  /** The state of a path's target. All unlisted models of a provider share one, because callers choose their names. */
  of(path: ResolvedModel): TargetState {
    const known = path.listed === null ? this.#unlisted.get(path.provider) : this.#byPath.get(path)
    return known ?? this.#find(path)
  }

  /** All states, in no order. */
  all(): Iterable<TargetState> {
    return this.#byName.values()
  }

  /** Orders the targets of one model, which come in the order of their tiers, for a request of this session. */
  order(paths: readonly ResolvedModel[], sessionId: string | null): ResolvedModel[] {
    const strategy = paths[0]?.listed?.strategy ?? 'priority'
    if (strategy === 'priority' || paths.length < 2) return [...paths]
    const now = this.#options.clock.monotonic()
    const candidates = paths.map((path): Candidate<ResolvedModel> => {
      const state = this.of(path)
      if (strategy === 'lowest_cost' && now - state.costAt > costMilliseconds) this.#price(path, state, now)
      const { tier, weight } = path.listed ?? { tier: 1, weight: 1 }
      const isOut = !state.hasFreeKey(now) || this.#options.circuits.isOpen(path, now)
      return { path, tier, weight, state, isOut, place: 0 }
    })
    const session = sessionId === null ? null : hashOf(sessionId)
    orderTargets(candidates, strategy, { session, now, random: this.#options.random })
    return candidates.map(({ path }) => path)
  }

  /** The number of the key to call a path with. */
  chooseKey(state: TargetState, sessionId: string | null): number {
    if (state.keyCount === 1) return 0
    return state.chooseKey(sessionId === null ? null : hashOf(sessionId), this.#options.clock.monotonic())
  }

  /** Whether all keys of a path were refused lately, or with `low` are refused or near their rate limits. */
  isResting(path: ResolvedModel, low: boolean): boolean {
    if (!isShared(path)) return false
    const now = this.#options.clock.monotonic()
    return low ? !this.of(path).hasFreeKey(now) : !this.of(path).hasUsableKey(now)
  }

  /** Notes what the headers of an answer say of the key that was used. */
  heard(path: ResolvedModel, key: number, { status, headers }: Pick<Response, 'status' | 'headers'>): void {
    if (!isShared(path)) return
    const state = this.of(path)
    const [now, monotonic] = [this.#options.clock.now(), this.#options.clock.monotonic()]
    const rest = restByRateLimits(headers, state.keyInFlight(key) - 1, now)
    if (rest !== null) state.lowerKey(key, monotonic, rest)
    if (!refusesKey(status)) return
    const { after }: RetryAdvice = retryAdvice(headers, now)
    state.refuseKey(key, monotonic, status, after ?? rest)
  }

  #price(path: ResolvedModel, state: TargetState, now: number): void {
    const { price } = this.#options.prices.terms(path, this.#options.clock.now())
    const tier = price?.tiers[0]
    state.cost = tier === undefined ? Number.POSITIVE_INFINITY : tier.input + tier.output
    state.costAt = now
  }

  #find(path: ResolvedModel): TargetState {
    const { provider, listed } = path
    const model = listed === null ? '*' : path.id
    const upstreamModel = listed === null ? '*' : path.upstreamModel
    const name = `${provider.id}/${upstreamModel}`
    const kept = `${model} ${name}`
    let state = this.#byName.get(kept)
    if (state === undefined || state.providerName !== provider.name) {
      state = new TargetState(provider, { model, upstreamModel, seed: hashOf(name) })
      this.#byName.set(kept, state)
    } else {
      state.renew(provider)
    }
    if (listed === null) this.#unlisted.set(provider, state)
    else this.#byPath.set(path, state)
    return state
  }
}

/** Whether another key or another target can take over from a path. */
export const isShared = ({ listed, provider }: ResolvedModel): boolean =>
  (listed !== null && listed.targets !== null) || (provider.keys !== undefined && provider.keys !== null)
