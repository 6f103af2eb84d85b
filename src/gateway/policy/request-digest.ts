/**
 * The digest under which a request is queued and granted (escalations/README.md). It covers what a reviewer decides
 * about, and not what a client changes when a person sends the same request again: members that only track, marks of
 * prompt caches, ids of messages, and repeated turns.
 */
import { isWaitingWords } from '../../failure.ts'
import { isObject, type JsonObject, objectsOf } from '../../languages/reading/json-value.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import { isRepetitive } from '../../lib/json/json-members.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'

/** Outermost members that only track or label a request. Providers and policies decide nothing by them. */
const tracking: ReadonlySet<string> = new Set([
  ...['client_metadata', 'prompt_cache_key', 'prompt_cache_retention', 'cache_control', 'session_id'],
  ...['safety_identifier', 'diagnostics'],
])

/** The hash of the received body by the installation's key, as events show it. */
export function promptHashOf(exchange: Exchange, { worker }: Gateway): string {
  exchange.promptHash ??= worker.status.promptHash(exchange.body ?? new Uint8Array(0))
  return exchange.promptHash
}

/** The digest has the language too, because the same request means something else in another language. */
export function digestOf(exchange: Exchange, gateway: Gateway): string {
  const { family } = exchange.dialect
  const request = family === 'mcp' || exchange.body === null ? null : sameRequest(exchange.body)
  const hash =
    request === null
      ? promptHashOf(exchange, gateway)
      : gateway.worker.status.promptHash(new TextEncoder().encode(JSON.stringify(request)))
  // A grant to send a request is not used up by counting its tokens.
  return `${exchange.family}/${hash}`
}

/** The request without what differs when it is repeated; null if it is no JSON object, or has a member twice. */
export function sameRequest(body: Uint8Array): JsonObject | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    const request = parseExactly(text)
    return isObject(request) && !isRepetitive(text, JSON.parse(text)) ? withoutTracking(request) : null
  } catch {
    return null
  }
}

function withoutTracking(body: JsonObject): JsonObject {
  const same: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (tracking.has(name)) continue
    if (name === 'metadata') addMetadata(same, value)
    else if (name === 'messages' || name === 'input' || name === 'contents') same[name] = conversationOf(value)
    else same[name] = name === 'system' || name === 'tools' ? uncached(value) : value
  }
  return same
}

/** Metadata without the id of device and session that agents put there. */
function addMetadata(same: JsonObject, metadata: unknown): void {
  if (!isObject(metadata) || metadata.user_id === undefined) {
    same.metadata = metadata
    return
  }
  const { user_id: _tracked, ...rest } = metadata
  if (Object.keys(rest).length > 0) same.metadata = rest
}

/** A list of blocks without marks of prompt caches. */
function uncached(value: unknown): unknown {
  if (!Array.isArray(value) || objectsOf(value) !== value) return value
  return value.map((block: JsonObject) => {
    const { cache_control: _mark, ...rest } = block
    return Array.isArray(rest.content) ? { ...rest, content: uncached(rest.content) } : rest
  })
}

/**
 * The turns without ids of messages. Left out are empty turns of the assistant, which a refusal leaves behind, a system
 * or developer message that stood before, and repetitions of the last turn.
 */
function conversationOf(value: unknown): unknown {
  if (!Array.isArray(value) || objectsOf(value) !== value) return value
  const turns: { role: unknown; turn: JsonObject; text: string }[] = []
  const orders = new Set<string>()
  for (const given of uncached(value) as readonly JsonObject[]) {
    if (isEmptyAnswer(given)) continue
    const turn = withoutId(given)
    const text = JSON.stringify(turn)
    if (isOrder(turn)) {
      if (orders.has(text)) continue
      orders.add(text)
    }
    turns.push({ role: turn.role, turn, text })
  }
  for (;;) {
    const last = turns.at(-1)
    // Claude Code puts its own system message behind the first turn of the user.
    const before = turns.slice(0, -1).findLast((turn) => !isOrder(turn))
    if (last?.role !== 'user' || before?.role !== 'user') break
    if (last.text !== before.text && !endsWith(before.turn, last.turn)) break
    turns.pop()
  }
  return turns.map(({ turn }) => turn)
}

/** Whether a turn ends with the one text that another is: Claude Code puts reminders before the first turn's text. */
function endsWith({ content }: JsonObject, { content: said, ...others }: JsonObject): boolean {
  if (typeof said !== 'string' || Object.keys(others).length > 1) return false
  const last = objectsOf(content).at(-1)
  return last?.type === 'text' && last.text === said
}

const isOrder = ({ role }: { role?: unknown }): boolean => role === 'system' || role === 'developer'

/**
 * A message's id is new in each session; the ids of calls and results connect them. A content that is one text is that
 * text: Claude Code writes the same message both ways.
 */
function withoutId(turn: JsonObject): JsonObject {
  if (typeof turn.role !== 'string') return turn
  const { id: _made, ...rest } = turn
  const [part, ...others] = Array.isArray(rest.content) ? objectsOf(rest.content) : []
  const isOneText = part?.type === 'text' && others.length === 0 && Object.keys(part).length === 2
  return isOneText && typeof part.text === 'string' ? { ...rest, content: part.text } : rest
}

const emptyMembers: ReadonlySet<string> = new Set(['role', 'type', 'id', 'status', 'content', 'refusal'])

const isOurs = (refusal: unknown): boolean => typeof refusal === 'string' && isWaitingWords(refusal)

/** The words of a waiting request and nothing else, which Google's clients keep as the model's turn. */
const isWaitingTurn = ({ role, parts, ...others }: JsonObject): boolean =>
  role === 'model' &&
  Object.keys(others).length === 0 &&
  Array.isArray(parts) &&
  parts.length > 0 &&
  parts.every((part: unknown) => isObject(part) && Object.keys(part).length === 1 && isOurs(part.text))

/** A text part with the words of a waiting request, which clients keep as the assistant's turn. */
const isOurPart = (part: unknown): boolean =>
  isObject(part) && (part.type === 'text' || part.type === 'output_text') && isOurs(part.text)

const isEmptyContent = (content: unknown): boolean =>
  content === null || content === '' || isOurs(content) || (Array.isArray(content) && content.every(isOurPart))

const isEmptyAnswer = (turn: JsonObject): boolean =>
  isWaitingTurn(turn) ||
  (turn.role === 'assistant' &&
    Object.keys(turn).every((name) => emptyMembers.has(name)) &&
    (turn.refusal === undefined || turn.refusal === null || isOurs(turn.refusal)) &&
    isEmptyContent(turn.content))
