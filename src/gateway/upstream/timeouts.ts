/** The deadlines for a provider in milliseconds: the settings, or what the operator set for this provider. */
import type { Settings } from '../../config.ts'
import type { Provider } from '../../providers/provider.ts'

export interface Deadlines {
  /** Until the connection is made. */
  connect: number
  /** Until the headers of the answer. */
  firstByte: number
  /** Of silence within an answer. */
  idle: number
  /** For the whole answer, from the first attempt on. */
  total: number
}

export type DeadlineSettings = Pick<
  Settings,
  'connect_timeout_seconds' | 'first_byte_timeout_seconds' | 'idle_timeout_seconds' | 'total_timeout_seconds'
>

type ProviderTimeouts = Pick<Provider, 'timeouts'>

const noTimeouts: ProviderTimeouts = {}
/** Computed once for each provider record, because every sweep asks for every running exchange. */
const cache = new WeakMap<DeadlineSettings, WeakMap<ProviderTimeouts, Deadlines>>()

export function deadlinesOf(provider: ProviderTimeouts | null, settings: DeadlineSettings): Deadlines {
  let ofProviders = cache.get(settings)
  if (ofProviders === undefined) {
    ofProviders = new WeakMap()
    cache.set(settings, ofProviders)
  }
  const timeoutsOf = provider ?? noTimeouts
  let deadlines = ofProviders.get(timeoutsOf)
  if (deadlines === undefined) {
    deadlines = computeDeadlines(timeoutsOf, settings)
    ofProviders.set(timeoutsOf, deadlines)
  }
  return deadlines
}

const computeDeadlines = ({ timeouts }: ProviderTimeouts, settings: DeadlineSettings): Deadlines => ({
  connect: 1000 * (timeouts?.connectSeconds ?? settings.connect_timeout_seconds),
  firstByte: 1000 * (timeouts?.firstByteSeconds ?? settings.first_byte_timeout_seconds),
  idle: 1000 * (timeouts?.idleSeconds ?? settings.idle_timeout_seconds),
  total: 1000 * (timeouts?.totalSeconds ?? settings.total_timeout_seconds),
})
