/**
 * What the span of a recorded exchange says of its answer beyond its usage: its id, the model that the provider names,
 * and why it ended. Of an exchange that is not recorded nothing is looked at; of a recorded stream only its first frames
 * and those that say an end are read once more.
 */

import { isObject, type JsonObject, objectsOf, parseObject, textOf } from '../../languages/reading/json-value.ts'
import type { Exchange } from '../exchange.ts'
import { withoutSecrets } from './redaction.ts'
import type { TracedAnswer } from './traced-answer.ts'

const mostFirstFrames = 4
const mostReasons = 16
const longestText = 256
/** Quotes inside of texts are escaped, so that no text looks like this. */
const saysEnd = /"(?:finish|stop)_reason"\s*:\s*"|"type"\s*:\s*"response\.(?:completed|incomplete|failed)"/
const ended: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])

/** Notes what a whole answer says. */
export function traceAnswer(exchange: Exchange, body: unknown): void {
  if (exchange.trace?.spanId && isObject(body)) note(tracedAnswerOf(exchange), body)
}

/** Notes what one frame's data says. */
export function traceFrame(exchange: Exchange, data: string): void {
  if (!exchange.trace?.spanId) return
  const answer = tracedAnswerOf(exchange)
  const isFirst = answer.id === null && answer.frames < mostFirstFrames
  if (!isFirst && !saysEnd.test(data)) return
  answer.frames += 1
  const frame = parseObject(data)
  if (frame !== null) note(answer, frame)
}

function tracedAnswerOf(exchange: Exchange): TracedAnswer {
  exchange.tracedAnswer ??= { id: null, model: null, finishReasons: [], frames: 0 }
  return exchange.tracedAnswer
}

/** In a stream of responses the answer stands in `response`, in one of messages first in `message`, then in `delta`. */
function note(answer: TracedAnswer, said: JsonObject): void {
  const { response, message, delta } = said
  const inner = isObject(response) ? response : isObject(message) ? message : said
  answer.id ??= shown(inner.id)
  answer.model ??= shown(inner.model)
  for (const reason of reasonsOf(inner, isObject(delta) ? delta : inner)) {
    const text = shown(reason)
    if (text !== null && answer.finishReasons.length < mostReasons) answer.finishReasons.push(text)
  }
}

function reasonsOf({ choices, status, incomplete_details: cut }: JsonObject, { stop_reason }: JsonObject): unknown[] {
  const reasons = objectsOf(choices).map(({ finish_reason }) => finish_reason)
  if (stop_reason !== undefined) reasons.push(stop_reason)
  if (ended.has(status)) reasons.push(isObject(cut) ? cut.reason : status)
  return reasons
}

function shown(value: unknown): string | null {
  const text = textOf(value)
  return text ? withoutSecrets(text).slice(0, longestText).toWellFormed() : null
}
