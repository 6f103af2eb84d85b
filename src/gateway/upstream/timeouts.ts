/** How long a provider may take, in milliseconds: the settings, but for what the operator says of this provider. */
import type { Settings } from '../../config.ts'
import type { Provider } from '../../providers/provider.ts'

export interface Deadlines {
  /** Until there is a connection. */
  connect: number
  /** Until the headers of its answer. */
  firstByte: number
  /** Of silence within an answer. */
  idle: number
  /** For the answer in all, from the first try on. */
  total: number
}

export type DeadlineSettings = Pick<
  Settings,
  'connect_timeout_seconds' | 'first_byte_timeout_seconds' | 'idle_timeout_seconds' | 'total_timeout_seconds'
>

type LowPriority = Pick<Provider, 'timeouts'>

const byDefault: LowPriority = {}
/** Worked out once for each provider as it is now: every sweep asks, for every exchange that runs. */
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
