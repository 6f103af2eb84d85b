/**
 * Names of the tools that the model called last, in the order of their calls: a request that follows a call holds the
 * call and its result, in every language. Events of a session show them (events/README.md).
 */
import type { TranslatedFamily } from '../../../languages/families.ts'
import { isObject, type JsonObject, objectsOf } from '../../../languages/reading/json-value.ts'

/** An answer may call more; these are enough to say what an agent does. */
const mostCalls = 16
const longestName = 128

/** Null where the last turn of the model calls none. */
export function calledTools(family: TranslatedFamily, body: Readonly<JsonObject>): string[] | null {
  const { turns, isAnswer, isOfUser, names } = forms[family]
  const list = body[turns]
  if (!Array.isArray(list)) return null
  const called: string[] = []
  // From the end to what the user said before the answer: the length of a conversation costs nothing.
  for (let at = list.length - 1; at >= 0; at -= 1) {
    const turn: unknown = list[at]
    if (!isObject(turn)) continue
    if (isAnswer(turn)) called.unshift(...names(turn))
    else if (isOfUser(turn) || called.length > 0) break
    if (called.length >= mostCalls) break
  }
  return called.length === 0 ? null : called.slice(-mostCalls)
}

interface Form {
  /** The member that holds the conversation. */
  turns: string
  /** The model said it. */
  isAnswer(turn: Readonly<JsonObject>): boolean
  /** The user said it, and it is no result of a tool. */
  isOfUser(turn: Readonly<JsonObject>): boolean
  names(turn: Readonly<JsonObject>): string[]
}

const nameOf = (value: unknown): string[] =>
  isObject(value) && typeof value.name === 'string' && value.name !== '' ? [value.name.slice(0, longestName)] : []

const hasPart = (list: unknown, isIt: (part: JsonObject) => boolean): boolean =>
  Array.isArray(list) && objectsOf(list).some(isIt)

const callTypes: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call', 'mcp_call'])

const forms: Readonly<Record<TranslatedFamily, Form>> = {
  chat: {
    turns: 'messages',
    isAnswer: ({ role }) => role === 'assistant',
    isOfUser: ({ role }) => role === 'user',
    names: ({ tool_calls: calls }) => objectsOf(calls).flatMap((call) => nameOf(call.function ?? call.custom)),
  },
  responses: {
    turns: 'input',
    isAnswer: ({ type, role }) => callTypes.has(type) || type === 'reasoning' || role === 'assistant',
    isOfUser: ({ role }) => role === 'user',
    names: (item) => (callTypes.has(item.type) ? nameOf(item) : []),
  },
  messages: {
    turns: 'messages',
    isAnswer: ({ role }) => role === 'assistant',
    isOfUser: ({ role, content }) => role === 'user' && !hasPart(content, ({ type }) => type === 'tool_result'),
    names: ({ content }) => objectsOf(content).flatMap((block) => (block.type === 'tool_use' ? nameOf(block) : [])),
  },
  gemini: {
    turns: 'contents',
    isAnswer: ({ role }) => role === 'model',
    isOfUser: ({ role, parts }) => role !== 'model' && !hasPart(parts, (part) => 'functionResponse' in part),
    names: ({ parts }) => objectsOf(parts).flatMap((part) => nameOf(part.functionCall)),
  },
}
