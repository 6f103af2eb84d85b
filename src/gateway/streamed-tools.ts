/** The names of tools that a frame of a streamed answer says are called, in chat, responses and messages. */
import { callTypes, isObject, toolName } from '../policies/context.ts'
import { calledTools } from '../policies/trial.ts'

export function streamedTools(frame: Readonly<Record<string, unknown>> | null): string[] {
  if (frame === null) return []
  if (Array.isArray(frame.choices)) return [...frame.choices.flatMap(chatTools), ...calledTools(frame)]
  // A provider may say a call only with the whole that its item stands in.
  const whole = isObject(frame.response) ? frame.response : frame.message
  const called = isObject(whole) ? calledTools(whole) : []
  for (const item of [frame.item, frame.content_block]) {
    if (isObject(item) && callTypes.has(item.type)) called.push(...[toolName(item) ?? []].flat())
  }
  return called
}

function chatTools(choice: unknown): string[] {
  const delta = isObject(choice) ? choice.delta : null
  if (!isObject(delta)) return []
  const calls: unknown[] = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  return [...calls, { function: delta.function_call }].flatMap((call) => calledName(call) ?? [])
}

/** Only a call's first piece names it. */
function calledName(call: unknown): string | null {
  if (!isObject(call)) return null
  const named = isObject(call.function) ? call.function : call.custom
  return isObject(named) && typeof named.name === 'string' ? named.name : null
}
