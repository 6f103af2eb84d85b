/**
 * Frames with numbers that are not valid JSON but that Python programs write and read: `NaN`, `Infinity`,
 * `-Infinity`, as the log probability of a token or a score. A standard parser drops such a frame or fails on it; all
 * others read the same text in it. The gateway reads it with `null` in their place. If a policy may change or stop
 * the answer, the frame is also sent like that, since a text without the frames that some clients drop is a different
 * text.
 *
 * Tool arguments are passed on unchanged, and nothing could replace such a number there: the frame counts as
 * malformed JSON.
 */
import { isObject, type JsonObject, parseObject } from '../json-value.ts'
import { isArgumentsObject } from '../texts/texts.ts'

/** A whole string, or one of these numbers. */
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|NaN|-?Infinity/g

/** The data of a frame with `null` for every such number; unchanged if there is none. */
export const withoutNonFinite = (data: string): string => replaced(data, 'null')

const replaced = (data: string, instead: string): string =>
  data.includes('NaN') || data.includes('Infinity')
    ? data.replace(stringOrNumber, (found) => (found.startsWith('"') ? found : instead))
    : data

/** The object in a frame's data; null if there is none. */
export function parseFrame(data: string): JsonObject | null {
  const parsed = parseObject(data)
  if (parsed !== null) return parsed
  const json = withoutNonFinite(data)
  if (json === data || asksNonFinite(parseObject(replaced(data, infinite)))) return null
  return parseObject(json)
}

/** A number that is valid JSON, and that JavaScript reads as `Infinity`. */
const infinite = '1e999'

const deepest = 64

/** Whether such a number is, or may be, among a tool's arguments: deeply nested values are not searched. */
function asksNonFinite(value: unknown, isAsked = false, depth = 0): boolean {
  if (typeof value === 'number') return isAsked && !Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return false
  if (depth > deepest) return true
  if (!isObject(value)) return Object.values(value).some((element) => asksNonFinite(element, isAsked, depth + 1))
  return Object.entries(value).some(([name, inner]) =>
    asksNonFinite(inner, isAsked || isArgumentsObject(name, inner, value), depth + 1),
  )
}
