/**
 * Bounds the number of texts that policies inspect in one MCP message, either way (setting `mcp_inspected_texts`). Each
 * text has a fixed cost however short it is, and only the message size bounds the number otherwise. A value shown as
 * JSON counts by the names, strings, numbers and words in it.
 */

import { Failure } from '../../failure.ts'
import { isScattered } from '../../languages/mcp/dialect.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { countParts } from '../../lib/json/json-parts.ts'
import type { Json } from '../../mcp/connection.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { evaluateAnswer, isAnswerEvaluated } from '../policy/evaluate-response.ts'

/** The least bytes of a JSON text: a digit and a comma. */
const leastBytes = 2

/** The stage for a caller's request. Throws `request_too_large`. */
export function limitRequestTexts(exchange: Exchange, gateway: Gateway): void {
  const { body, parsed } = exchange
  // The digest text of a grant leaves out `_meta`.
  const hasMeta = isObject(parsed?.params) && parsed.params._meta !== undefined
  if (hasMeta || required(body).length > leastBytes * gateway.settings.mcp_inspected_texts)
    limitAnswerTexts(exchange, gateway)
}

/** Bounds the caller's answer in `exchange.parsed`. Throws `request_too_large`. */
export function limitAnswerTexts({ chain, dialect, parsed }: Exchange, gateway: Gateway): void {
  if (parsed === null || required(chain).at('pre_request').length === 0) return
  const params = isObject(parsed.params) ? parsed.params : {}
  if (hasTooMany(params, () => dialect.requestText(parsed), gateway))
    throw new Failure('request_too_large', { message: tooMany })
}

/** Applies answer policies to a server message and changes it in place. Throws `mcp.server_error`. */
export async function evaluateServerMessage(exchange: Exchange, gateway: Gateway, body: Json): Promise<void> {
  if (!isAnswerEvaluated(exchange)) return
  if (hasTooMany(body, () => exchange.dialect.answerText(body), gateway))
    throw new Failure('mcp.server_error', { message: tooMany })
  await evaluateAnswer(exchange, gateway, { status: 200, body })
}

const tooMany = 'The message has more texts than policies inspect'
const hasTooMany = (message: Json, texts: () => readonly TextSlot[], { settings }: Gateway): boolean => {
  const most = settings.mcp_inspected_texts
  return isScattered(message, most) || isMoreThan(most, texts())
}

function isMoreThan(most: number, texts: readonly TextSlot[]): boolean {
  let left = most
  for (const { kind, text } of texts) {
    left -= kind === 'tool_arguments' ? countParts(text, left) : 1
    if (left < 0) return true
  }
  return false
}
