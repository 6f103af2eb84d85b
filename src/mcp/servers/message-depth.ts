/**
 * Limits the nesting depth of server messages to that of callers' messages. Code that reads parsed JSON is recursive,
 * so a deeper message is not parsed at all.
 */
import { jsonMembers } from '../../lib/json/json-members.ts'

const deepest = 64

export function isTooDeep(text: string): boolean {
  try {
    jsonMembers(text, deepest)
    return false
  } catch (thrown) {
    if (thrown instanceof RangeError) return true
    throw thrown
  }
}

/** The request id that the message of this text answers, without parsing it; null for none. */
export function answeredRequestId(text: string): number | null {
  const { names, spans } = jsonMembers(text, Number.POSITIVE_INFINITY)
  const [start, end] = spans[names.lastIndexOf('id')] ?? [0, 0]
  const id = text.slice(start, end).trim()
  return names.includes('method') || !/^\d{1,15}$/.test(id) ? null : Number(id)
}
