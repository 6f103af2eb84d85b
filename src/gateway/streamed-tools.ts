/**
 * The names of tools that a frame of a streamed answer says are called, where it says them whole. What comes in parts (the
 * deltas of chat) is gathered by `CollectedAnswer`.
 */
import { callTypes, isObject, toolName } from '../policies/context.ts'
import { calledTools } from '../policies/trial.ts'

export function streamedTools(frame: Readonly<Record<string, unknown>> | null): string[] {
  if (frame === null) return []
  if (Array.isArray(frame.choices)) return calledTools(frame)
  // A provider may say a call only with the whole that its item stands in.
  const whole = isObject(frame.response) ? frame.response : frame.message
  const called = isObject(whole) ? calledTools(whole) : []
  for (const item of [frame.item, frame.content_block]) {
    if (isObject(item) && callTypes.has(item.type)) called.push(...[toolName(item) ?? []].flat())
  }
  if (typeof frame.name === 'string' && typeof frame.type === 'string' && ofCall.test(frame.type))
    called.push(frame.name)
  return called
}

/** `response.function_call_arguments.done` names the tool too. */
const ofCall = /_call_(?:arguments|input)\.[a-z]+$/

const toolChannel = /\/(?:tool_calls|function_call)\b.*\/name$/

/** Whether a channel's text is the name of a tool that is called. */
export const isToolChannel = (channel: string): boolean => toolChannel.test(channel)
