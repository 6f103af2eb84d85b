/** How long a provider may take, in milliseconds: the settings, but for what the operator says of this provider. */
import type { Settings } from '../config.ts'
import type { Provider } from '../providers/provider.ts'

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

export const deadlinesOf = (provider: Pick<Provider, 'timeouts'> | null, settings: DeadlineSettings): Deadlines => ({
  connect: 1000 * (provider?.timeouts?.connectSeconds ?? settings.connect_timeout_seconds),
  firstByte: 1000 * (provider?.timeouts?.firstByteSeconds ?? settings.first_byte_timeout_seconds),
  idle: 1000 * (provider?.timeouts?.idleSeconds ?? settings.idle_timeout_seconds),
  total: 1000 * (provider?.timeouts?.totalSeconds ?? settings.total_timeout_seconds),
})
