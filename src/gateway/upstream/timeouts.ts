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

type LowPriority = Pick<Provider, 'timeouts'>

const byDefault: LowPriority = {}
/** Computed once for each provider record, because every sweep asks for every running exchange. */
const known = new WeakMap<DeadlineSettings, WeakMap<LowPriority, Deadlines>>()

export function deadlinesOf(provider: LowPriority | null, settings: DeadlineSettings): Deadlines {
  let ofProviders = known.get(settings)
  if (ofProviders === undefined) {
    ofProviders = new WeakMap()
    known.set(settings, ofProviders)
  }
  const patient = provider ?? byDefault
  let deadlines = ofProviders.get(patient)
  if (deadlines === undefined) {
    deadlines = workedOut(patient, settings)
    ofProviders.set(patient, deadlines)
  }
  return deadlines
}

const workedOut = ({ timeouts }: LowPriority, settings: DeadlineSettings): Deadlines => ({
  connect: 1000 * (timeouts?.connectSeconds ?? settings.connect_timeout_seconds),
  firstByte: 1000 * (timeouts?.firstByteSeconds ?? settings.first_byte_timeout_seconds),
  idle: 1000 * (timeouts?.idleSeconds ?? settings.idle_timeout_seconds),
  total: 1000 * (timeouts?.totalSeconds ?? settings.total_timeout_seconds),
})
