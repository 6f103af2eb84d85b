/** A provider's count of the tokens of a request, in the form of the messages language. */
import { isObject, type JsonObject, parseObject } from '../languages/reading/json-value.ts'
import { errorBytes, heldBody } from './held-body.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/**
 * The count as `{input_tokens}`. Errors are passed on as they are. An answer without a count stays too, and the gateway
 * refuses it as no valid answer.
 */
export async function countOf(answer: Response, member: string): Promise<Response> {
  if (!answer.ok) return answer
  const { text, answer: same } = await heldBody(answer, errorBytes)
  const count = text === null ? null : parseObject(text)?.[member]
  return typeof count === 'number' ? Response.json({ input_tokens: count }) : same
}

/** The body as a member of another, with its bytes unchanged. `more`: further members of the inner object. */
export function enclosed(body: Uint8Array, member: string, more: JsonObject): Uint8Array {
  const rest = decoder.decode(body).trimStart().slice(1)
  return encoder.encode(`{${JSON.stringify(member)}:${JSON.stringify(more).slice(0, -1)},${rest}}`)
}

/** Only these members of a body. */
export function onlyMembersOf(body: Uint8Array, names: readonly string[]): JsonObject {
  const parsed = parseObject(decoder.decode(body))
  if (!isObject(parsed)) return {}
  return Object.fromEntries(names.filter((name) => Object.hasOwn(parsed, name)).map((name) => [name, parsed[name]]))
}
