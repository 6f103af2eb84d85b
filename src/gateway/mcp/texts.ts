/**
 * How many texts policies look at in one MCP message, either way (setting `mcp_inspected_texts`). Each costs a turn of its
 * own however short it is, and nothing else bounds their number: a long text is bounded by its message's size. What is
 * shown as the JSON of an object counts by what it holds: names, strings, numbers and words.
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

/** JSON of one text is no shorter: a digit and a comma. */
const leastBytes = 2

/** The stage of a caller's request. Throws `request_too_large`. */
export function boundTexts(exchange: Exchange, gateway: Gateway): void {
  const { body, parsed } = exchange
  // The body by which a reviewer's leave is known holds no `_meta`.
  const hasMeta = isObject(parsed?.params) && parsed.params._meta !== undefined
  if (hasMeta || required(body).length > leastBytes * gateway.settings.mcp_inspected_texts) boundSaid(exchange, gateway)
}

/** What a caller says, which `exchange.parsed` holds. Throws `request_too_large`. */
export function boundSaid({ chain, dialect, parsed }: Exchange, gateway: Gateway): void {
  if (parsed === null || required(chain).at('pre_request').length === 0) return
  const params = isObject(parsed.params) ? parsed.params : {}
  if (hasTooMany(params, () => dialect.requestText(parsed), gateway))
    throw new Failure('request_too_large', { message: tooMany })
}

/** What a server says, under the policies of answers, which change it in place. Throws `mcp.server_error`. */
export async function evaluateSaid(exchange: Exchange, gateway: Gateway, body: Json): Promise<void> {
  if (!isAnswerEvaluated(exchange)) return
  if (hasTooMany(body, () => exchange.dialect.answerText(body), gateway))
    throw new Failure('mcp.server_error', { message: tooMany })
  await evaluateAnswer(exchange, gateway, { status: 200, body })
}

const tooMany = 'The message has more texts than policies look at'
const hasTooMany = (said: Json, texts: () => readonly TextSlot[], { settings }: Gateway): boolean => {
  const most = settings.mcp_inspected_texts
  return isScattered(said, most) || isMoreThan(most, texts())
}

function isMoreThan(most: number, texts: readonly TextSlot[]): boolean {
  let left = most
  for (const { kind, text } of texts) {
    left -= kind === 'tool_arguments' ? countParts(text, left) : 1
    if (left < 0) return true
  }
  return false
}
