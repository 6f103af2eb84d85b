/**
 * The tool names in a frame of a streamed answer that come whole. Names in parts (chat deltas) are collected by
 * `CollectedAnswer`.
 */
import { isObject } from '../../policies/conditions/context.ts'
import { calledTools, toolsCalledIn } from '../../policies/tool-names.ts'

export function streamedTools(frame: Readonly<Record<string, unknown>> | null): string[] {
  if (frame === null) return []
  if (Array.isArray(frame.choices) || Array.isArray(frame.candidates)) return calledTools(frame)
  // A provider may name a call only in the object that contains its item.
  const whole = isObject(frame.response) ? frame.response : frame.message
  const called = isObject(whole) ? calledTools(whole) : []
  called.push(...toolsCalledIn(frame.item), ...toolsCalledIn(frame.content_block))
  if (typeof frame.name === 'string' && typeof frame.type === 'string' && ofCall.test(frame.type))
    called.push(frame.name)
  return called
}

/** `response.function_call_arguments.done` names the tool too. */
const ofCall = /_call_(?:arguments|input)\.[a-z]+$/

const toolChannel = /\/(?:tool_calls|function_call)\b.*\/name$/

/** Whether the text of a channel is the name of a called tool. */
export const isToolChannel = (channel: string): boolean => toolChannel.test(channel)
