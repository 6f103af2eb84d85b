/**
 * The interface between the stream relay and inspection (inspection/README.md). The relay splits the stream into
 * frames, reads them, and hands each one in order to the exchange's inspection. What the inspection returns goes to the
 * caller.
 *
 * An inspection opens frames with the exchange's reader (`open`, `delta`), holds text that may become a match, and says
 * when the stream must stop. It does not end the stream itself: the relay records the outcome, then writes the error or
 * escalation frames of the dialect.
 */

import type { Failure } from '../../failure.ts'
import type { FrameFacts, StreamReader } from '../../languages/dialect.ts'
import type { SseFrame } from '../../lib/http/sse.ts'

export interface StreamInspection {
  /**
   * Takes the next frame. `facts` are null for a frame without data, such as a comment. Frames that only the gateway
   * requested are not passed in. Before a terminal frame or a provider error all held text goes out. Returns a promise
   * only when a policy calls an outside service.
   */
  take(frame: SseFrame, facts: FrameFacts | null): Inspected | Promise<Inspected>
  /** The provider's stream ended without a terminal frame: returns held text that may go out. */
  end(): Inspected | Promise<Inspected>
}

export interface Inspected {
  /**
   * The bytes for the caller now; null when all are held. With `stop`, the bytes that may still go out before the end.
   */
  readonly bytes: Uint8Array | null
  /**
   * Ends the stream with a failure that has a `verdictan`. Verdict `ESCALATE` ends it with the dialect's escalation
   * frames, any other with its error frames. If nothing was passed on yet, a block is a whole error answer.
   */
  readonly stop: Failure | null
}

/** Begins the inspection of a stream under the chain that admitted the request; null when no policy inspects it. */
export type BeginInspection = (reader: StreamReader) => StreamInspection | null
