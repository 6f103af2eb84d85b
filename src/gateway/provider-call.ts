import type { StreamReader, Usage } from '../languages/dialect.ts'
import type { TracedAnswer } from './accounting/traced-answer.ts'
import type { ReceivedAnswer } from './cache/cache-state.ts'
import type { StreamInspection } from './policy/inspected-stream.ts'
import type { BackgroundResponse } from './stored/stored-state.ts'

/**
 * One call to a provider with all that is known of its answer. A failed call is dropped, and the next one begins anew.
 * The first exists before anything is sent, because its signal also ends the waits for limits.
 */
export interface Call {
  /**
   * Passed to every upstream call. A client disconnect, a deadline or a drain aborts it. A retry gets a new one,
   * because the former was used to cancel its call.
   */
  abort: AbortController
  /** The provider's response, referenced here so that it is not garbage-collected while its body streams. */
  upstream: Response | null
  /** Reads the frames of a streamed answer; null for a whole answer. */
  reader: StreamReader | null
  /** The inspection of a streamed answer; null when no policy inspects it. */
  inspection: StreamInspection | null
  /** post_request policies inspect the answer before it is translated and note the usage of its frames. */
  inspectedUpstream: boolean
  /** Usage as the provider reported it. */
  usage: Usage | null
  /** Estimated input tokens of calls without a report, for a request sent as several calls; null otherwise. */
  unreportedInputTokens: number | null
  /** The characters of a stream since its last usage report. */
  charactersSinceUsage: number
  /** Tokens of sound in a stream, by its length. */
  soundTokens: number
  /** The answer attributes of its span; null when the exchange is not traced or has no answer. */
  tracedAnswer: TracedAnswer | null
  /**
   * The monotonic time since when the provider has been silent; null when nothing is awaited. `in-flight.ts` checks it.
   */
  silentSince: number | null
  /** The response in the background that it made; null before its id is known, and for other responses. */
  background: BackgroundResponse | null
  /** The answer as it is received, to be kept in the cache; null for most calls. */
  received: ReceivedAnswer | null
}

export const newCall = (): Call => ({
  abort: new AbortController(),
  upstream: null,
  reader: null,
  inspection: null,
  inspectedUpstream: false,
  usage: null,
  unreportedInputTokens: null,
  charactersSinceUsage: 0,
  soundTokens: 0,
  tracedAnswer: null,
  silentSince: null,
  background: null,
  received: null,
})
