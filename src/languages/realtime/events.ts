/**
 * What the events of a realtime response do differently from those of `POST /v1/responses`: one event ends a response,
 * whatever its end, an event has an id and no number, sound is streamed, and items stand in events of the conversation.
 */
import { envelope } from '../../failure.ts'
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'
import type { EventForm } from '../responses/stream-reader.ts'

/** The form of the ids of the gateway's own events. */
export const eventId = (unique: string): string => `event_gatehouse_${unique.slice(0, 64)}`

/** Bytes of sound a second, by the format that a session names (OpenAI's API reference, RealtimeAudioFormats). */
const bytesPerSecond: Readonly<Record<string, number>> = { 'audio/pcm': 48_000, 'audio/pcmu': 8000, 'audio/pcma': 8000 }
const usualFormat = 'audio/pcm'
/** A second of sound as tokens (OpenAI's guide, Managing costs: one for 100 ms of input and for 50 ms of output). */
const heardTokensPerSecond = 10
const spokenTokensPerSecond = 20

/** Seconds of sound in base64. */
export function soundSeconds(base64: string, format: string = usualFormat): number {
  return (base64.length * 3) / 4 / (bytesPerSecond[format] ?? bytesPerSecond[usualFormat] ?? 1)
}

export const heardTokens = (seconds: number): number => Math.ceil(seconds * heardTokensPerSecond)

/** The format of the sound that goes one way, in a session or a response. */
export function soundFormat(settings: JsonObject | null, way: 'input' | 'output'): string {
  const audio = isObject(settings?.audio) ? settings.audio[way] : null
  const format = isObject(audio) ? audio.format : null
  return (isObject(format) ? textOf(format.type) : textOf(format)) ?? usualFormat
}

const itemEvents: ReadonlySet<string> = new Set([
  'conversation.item.created',
  'conversation.item.added',
  'conversation.item.done',
])

/** Whether an event shows an item of the conversation. */
export const isItemEvent = (type: string): boolean => itemEvents.has(type)

export const realtimeEvents: EventForm = {
  terminal: new Set(['response.done']),
  isItemEvent,
  errorOf(type, { response, error }) {
    if (type === 'error') return codeOf(error)
    if (type !== 'response.done' || !isObject(response) || response.status !== 'failed') return null
    return codeOf(isObject(response.status_details) ? response.status_details.error : null)
  },
  soundTokens(type, { delta }, response) {
    if (type !== 'response.output_audio.delta' || typeof delta !== 'string') return 0
    return soundSeconds(delta, soundFormat(response, 'output')) * spokenTokensPerSecond
  },
  head: () => ({ event_id: eventId(crypto.randomUUID()) }),
  errorEvents(failure, requestId, response) {
    const error = { type: 'error', ...envelope(failure, requestId) }
    if (response === null) return [error]
    const blocked = failure.verdictan !== null
    const details = blocked
      ? { type: 'incomplete', reason: 'content_filter' }
      : { type: 'failed', error: { type: failure.type, code: failure.code } }
    return [error, endOf(response, blocked ? 'incomplete' : 'failed', details)]
  },
  waitingEvents: ({ response, verdictan }) => [
    { ...endOf(response, 'incomplete', { type: 'incomplete', reason: 'content_filter' }), verdictan },
  ],
}

/** The end of a response that the gateway ends, as the provider would write it. */
const endOf = (response: JsonObject, status: string, details: JsonObject): JsonObject => ({
  type: 'response.done',
  response: { ...response, object: 'realtime.response', status, status_details: details, output: [] },
})

const codeOf = (error: unknown): string =>
  (isObject(error) ? (textOf(error.code) ?? textOf(error.type)) : null) ?? 'unknown'
