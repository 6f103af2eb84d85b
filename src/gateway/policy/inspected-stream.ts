/**
 * Where streaming inspection meets the relay (inspection/README.md). The relay cuts the stream into frames, reads what
 * each means, and hands every one to the exchange's inspection, in order; what comes back is what the caller gets.
 *
 * An inspection opens frames with the exchange's reader (`open`, `delta`), holds back what may still become a match, and
 * says when the stream must stop. It never ends the stream itself: the relay records the outcome, then writes the
 * dialect's error or escalation frames.
 */

import type { Failure } from '../../failure.ts'
import type { FrameFacts, StreamReader } from '../../languages/dialect.ts'
import type { SseFrame } from '../../lib/http/sse.ts'

export interface StreamInspection {
  /**
   * Takes the next frame. `facts` are null for a frame without data, such as a comment. Frames that only the gateway
   * asked for never come here. With a terminal frame, or a provider's error, all that is still held goes out before it.
   * A promise only where a policy asks outside this process.
   */
  take(frame: SseFrame, facts: FrameFacts | null): Inspected | Promise<Inspected>
  /** The provider's side ended without a terminal frame: what is still held, where it may go. */
  end(): Inspected | Promise<Inspected>
}

export interface Inspected {
  /** What goes to the caller now; null where all of it is held back. With `stop`, what may still go before the end. */
  readonly bytes: Uint8Array | null
  /**
   * Ends the stream here: a failure with `verdictan`. Verdict `ESCALATE` ends it with the dialect's escalation frames,
   * any other with its error frames. Where nothing has been passed on yet, a block is a whole error answer.
   */
  readonly stop: Failure | null
}

/** Begins the inspection of a stream under the chain that admitted the request; null where no policy looks at it. */
export type BeginInspection = (reader: StreamReader) => StreamInspection | null
