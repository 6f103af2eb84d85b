/**
 * What in a parsed body moves its cost beyond its own text: pictures and sound, tools that the provider runs, members
 * that ask for another price list. Read in every language alike, because they share these words.
 */

type Body = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const textParts = new Set([
  'text',
  'input_text',
  'output_text',
  'refusal',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'message',
  'function_call',
  'function_call_output',
  'reasoning',
])

/** Whether any part of the messages is other than text: its tokens are then not bounded by its bytes. */
export function holdsMedia(body: Body): boolean {
  return [...listOf(body.messages), ...listOf(body.input), ...listOf(body.system)].some(isMedia)
}

function isMedia(part: unknown): boolean {
  if (!isObject(part)) return false
  if (typeof part.type === 'string' && !textParts.has(part.type)) return true
  return listOf(part.content).some(isMedia) || listOf(part.output).some(isMedia)
}

/** Kinds of tools that the caller's own program runs: they cost what their tokens do. */
const callersTools = /^(function|custom|bash|text_editor|memory|computer|local_shell|apply_patch)/

/** The most uses of tools that the provider runs; 0 where there are none, null where nothing bounds them. */
export function hostedToolUses(body: Body): number | null {
  let uses = 0
  for (const tool of listOf(body.tools)) {
    if (!isObject(tool) || typeof tool.type !== 'string' || callersTools.test(tool.type)) continue
    const most = count(tool.max_uses) ?? count(body.max_tool_calls)
    if (most === null) return null
    uses += most
  }
  return body.web_search_options === undefined ? uses : null
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

/** A member that asks for service at another price than the list's; null where there is none. */
export function repricingMember(body: Body): string | null {
  if (body.service_tier === 'priority') return 'service_tier'
  if (body.speed === 'fast') return 'speed'
  return body.inference_geo === undefined ? null : 'inference_geo'
}
