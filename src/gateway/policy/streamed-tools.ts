/**
 * The names of tools that a frame of a streamed answer says are called, where it says them whole. What comes in parts (the
 * deltas of chat) is gathered by `CollectedAnswer`.
 */
import { isObject } from '../../policies/conditions/context.ts'
import { calledTools, toolsCalledIn } from '../../policies/tool-names.ts'

export function streamedTools(frame: Readonly<Record<string, unknown>> | null): string[] {
  if (frame === null) return []
  if (Array.isArray(frame.choices)) return calledTools(frame)
  // A provider may say a call only with the whole that its item stands in.
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

/** Whether a channel's text is the name of a tool that is called. */
export const isToolChannel = (channel: string): boolean => toolChannel.test(channel)
