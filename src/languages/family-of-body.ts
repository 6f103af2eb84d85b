/** Which family a body is of, for callers that do not name it: `gatehouse policy test`. */
import { type Family, families, modelFamilies } from './families.ts'
import { isObject, type JsonObject, objectsOf } from './reading/json-value.ts'

/** The member without which a body is not of the family. */
const mainMembers = {
  chat: ['messages'],
  responses: ['input'],
  messages: ['messages'],
  gemini: ['contents'],
  embeddings: ['input'],
  transcriptions: ['file'],
  translations: ['file'],
  speech: ['input'],
  completions: ['prompt'],
  moderations: ['input'],
  images: ['prompt'],
  image_edits: ['image', 'image[]'],
  rerank: ['documents'],
  // The body that a policy is tried with; the events of a session have members of other families.
  realtime: ['output_modalities'],
} as const satisfies Record<Exclude<Family, 'mcp'>, readonly string[]>

/** Parts of conversations that only the messages language has. */
const messageBlocks: ReadonlySet<unknown> = new Set(['tool_use', 'tool_result', 'thinking', 'redacted_thinking'])

/**
 * The family that knows most of the body's members; of equals the more usual one, so that `{model, messages}` is chat.
 * A body of no known form counts as chat, whose reader then says what is missing.
 */
export function familyOfBody(body: Readonly<JsonObject>): Family {
  if (typeof body.method === 'string' && !Object.hasOwn(body, 'model')) return 'mcp'
  let best: Family = 'chat'
  let most = 0
  for (const family of modelFamilies) {
    if (!mainMembers[family].some((member) => Object.hasOwn(body, member))) continue
    const known = Object.keys(body).filter((member) => Object.hasOwn(families[family].members, member)).length
    const points = known + hints(family, body)
    if (points <= most) continue
    most = points
    best = family
  }
  return best
}

function hints(family: Family, { model, messages, tools }: Readonly<JsonObject>): number {
  const named = (word: string) => (typeof model === 'string' && model.includes(word) ? 1 : 0)
  if (family === 'moderations') return named('moderation')
  if (family === 'embeddings') return named('embed')
  if (family !== 'messages') return 0
  const hasTools = objectsOf(tools).some((tool) => isObject(tool.input_schema))
  const hasBlocks = objectsOf(messages).some(({ content }) =>
    objectsOf(content).some(({ type }) => messageBlocks.has(type)),
  )
  return (hasTools ? 5 : 0) + (hasBlocks ? 5 : 0)
}
