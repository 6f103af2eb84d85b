/**
 * How deep a message of an MCP server may be nested: as deep as one of a caller. Whatever reads what was parsed calls
 * itself level by level, so a deeper one is not parsed at all.
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

/** Which request the message of this text answers, without parsing it; null where it answers none. */
export function answeredBy(text: string): number | null {
  const { names, spans } = jsonMembers(text, Number.POSITIVE_INFINITY)
  const [start, end] = spans[names.lastIndexOf('id')] ?? [0, 0]
  const id = text.slice(start, end).trim()
  return names.includes('method') || !/^\d{1,15}$/.test(id) ? null : Number(id)
}
