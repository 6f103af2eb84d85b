/** The limits of time of a session. */
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'
import type { Provider } from '../../providers/provider.ts'
import { deadlinesOf } from '../upstream/timeouts.ts'
import type { Ending } from '../websocket/endings.ts'

/** Where a session stands, in seconds. */
export interface SessionTimes {
  readonly age: number | undefined
  /** Since the last event of the client. */
  readonly idle: number | undefined
  /** The session with the provider is open. */
  readonly isReady: boolean
  readonly isAnswering: boolean
}

interface Over {
  readonly failure: Failure
  readonly ending: Ending
}

const over = (message: string, reason: string): Over => ({
  failure: new Failure('realtime_session_ended', { message }),
  ending: { code: 1000, reason },
})

/** The limit that a session has reached, and how it ends; null while there is time. */
export function limitReached(
  settings: Settings,
  provider: Provider,
  { age = 0, idle = 0, isReady, isAnswering }: SessionTimes,
): Over | null {
  const { realtime_session_seconds: longest, realtime_idle_seconds: quiet } = settings
  if (!isReady && 1000 * age > deadlinesOf(provider, settings).connect) {
    const failure = new Failure('provider_primary_path_error', { message: 'The provider did not answer in time' })
    return { failure, ending: { code: 1011, reason: 'The provider did not answer' } }
  }
  if (age > longest) {
    const message = `The session has lasted as long as realtime_session_seconds allows, ${longest} s`
    return over(message, 'The session has reached its greatest length')
  }
  if (!isReady || isAnswering || idle <= quiet) return null
  return over(`The client sent nothing for ${quiet} s (realtime_idle_seconds)`, 'The session was idle')
}
