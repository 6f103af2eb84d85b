/**
 * Reads from an answer what its span states beyond usage: the id, the model that the provider names, and the finish
 * reasons. Without a recorded trace nothing is read. Of a recorded stream only the first frames and the frames that may
 * hold a finish reason are parsed a second time.
 */

import { isObject, type JsonObject, objectsOf, parseObject, textOf } from '../../languages/reading/json-value.ts'
import type { Exchange } from '../exchange.ts'
import { maskSecrets } from './redaction.ts'
import type { TracedAnswer } from './traced-answer.ts'

const mostFirstFrames = 4
const mostReasons = 16
const longestText = 256
/** Quotes inside a text are escaped, so no text matches this. */
const finishReasonPattern =
  /"(?:(?:finish|stop)_r|finishR)eason"\s*:\s*"|"type"\s*:\s*"response\.(?:completed|incomplete|failed)"/
const ended: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])

/** Reads the attributes of a whole answer. */
export function traceAnswer(exchange: Exchange, body: unknown): void {
  if (exchange.trace?.spanId && isObject(body)) note(tracedAnswerOf(exchange), body)
}

/** Reads the attributes of one frame. */
export function traceFrame(exchange: Exchange, data: string): void {
  if (!exchange.trace?.spanId) return
  const answer = tracedAnswerOf(exchange)
  const isFirst = answer.id === null && answer.frames < mostFirstFrames
  if (!isFirst && !finishReasonPattern.test(data)) return
  answer.frames += 1
  const frame = parseObject(data)
  if (frame !== null) note(answer, frame)
}

function tracedAnswerOf(exchange: Exchange): TracedAnswer {
  exchange.call.tracedAnswer ??= { id: null, model: null, finishReasons: [], frames: 0 }
  return exchange.call.tracedAnswer
}

/**
 * A responses stream holds the answer in `response`; a messages stream holds it first in `message`, then in `delta`.
 * Gemini has other names.
 */
function note(answer: TracedAnswer, body: JsonObject): void {
  const { response, message, delta } = body
  const inner = isObject(response) ? response : isObject(message) ? message : body
  answer.id ??= shown(inner.id ?? inner.responseId)
  answer.model ??= shown(inner.model ?? inner.modelVersion)
  for (const reason of reasonsOf(inner, isObject(delta) ? delta : inner)) {
    const text = shown(reason)
    if (text !== null && answer.finishReasons.length < mostReasons) answer.finishReasons.push(text)
  }
}

function reasonsOf(
  { choices, candidates, status, incomplete_details: cut }: JsonObject,
  { stop_reason }: JsonObject,
): unknown[] {
  const reasons = objectsOf(choices).map(({ finish_reason }) => finish_reason)
  for (const { finishReason } of objectsOf(candidates)) if (finishReason !== undefined) reasons.push(finishReason)
  if (stop_reason !== undefined) reasons.push(stop_reason)
  if (ended.has(status)) reasons.push(isObject(cut) ? cut.reason : status)
  return reasons
}

function shown(value: unknown): string | null {
  const text = textOf(value)
  return text ? maskSecrets(text).slice(0, longestText).toWellFormed() : null
}
