/**
 * Follows the streams of families whose answers no policy reads: each frame's data is one JSON object, which the
 * family interprets. There is nothing to open, and errors are sent in the envelope, on which the clients throw.
 */
import { envelope, type Verdictan } from '../../../failure.ts'
import type { FrameFacts, StreamReader } from '../../dialect.ts'
import { errorCode, type JsonObject, parseObject } from '../json-value.ts'
import { doneFrame, isDone } from './done-marker.ts'

const encoder = new TextEncoder()
const nothing: FrameFacts = { terminal: false, textLength: 0, usage: null, error: null, ours: false }

const dataFrame = (data: unknown): Uint8Array => encoder.encode(`data: ${JSON.stringify(data)}\n\n`)

export interface EventLanguage {
  /** The meaning of a frame's data; the provider's errors are handled before. */
  read(data: JsonObject): Partial<FrameFacts>
  /** Whether a stream ends with `data: [DONE]`. */
  endsWithDone: boolean
  /** The data of the frame that reports an escalation; left out if the family answers 403. */
  escalation?(verdictan: Verdictan): JsonObject
}

export function eventReader({ read, endsWithDone, escalation }: EventLanguage): StreamReader {
  const end = encoder.encode(endsWithDone ? doneFrame : '')
  return {
    frame({ data }) {
      if (isDone(data)) return { ...nothing, terminal: true }
      const object = parseObject(data)
      if (object === null) return nothing
      const { error } = object
      if (error !== undefined && error !== null) return { ...nothing, terminal: true, error: errorCode(error) }
      return { ...nothing, ...read(object) }
    },
    open: () => null,
    delta: () => {
      throw new RangeError('The family has no text to add to')
    },
    errorFrames: (failure, requestId) => Buffer.concat([dataFrame(envelope(failure, requestId)), end]),
    endFrames: () => end,
    escalationFrames: (verdictan) => (escalation ? Buffer.concat([dataFrame(escalation(verdictan)), end]) : end),
  }
}
