/** The names of tools that a frame of a streamed answer says are called, in chat, responses and messages. */
import { isObject, toolName } from '../policies/context.ts'

const callTypes: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'mcp_call',
  'tool_use',
  'server_tool_use',
])

export function streamedTools(frame: Readonly<Record<string, unknown>> | null): string[] {
  if (frame === null) return []
  if (Array.isArray(frame.choices)) return frame.choices.flatMap(chatTools)
  for (const item of [frame.item, frame.content_block]) {
    if (isObject(item) && callTypes.has(item.type)) return [toolName(item) ?? []].flat()
  }
  return []
}

function chatTools(choice: unknown): string[] {
  const delta = isObject(choice) ? choice.delta : null
  const calls = isObject(delta) ? delta.tool_calls : null
  return Array.isArray(calls) ? calls.flatMap((call: unknown) => calledName(call) ?? []) : []
}

/** Only a call's first piece names it. */
const calledName = (call: unknown): string | null =>
  isObject(call) && isObject(call.function) && typeof call.function.name === 'string' ? call.function.name : null
