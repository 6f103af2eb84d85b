/**
 * Frames with numbers that no JSON has, and that programs in Python write and read all the same: `NaN`, `Infinity`,
 * `-Infinity`, as the log probability of a token or a score. Whoever reads by the standard drops such a frame, or fails on
 * it; all others read the same in it. It is read with `null` in their places, and where a policy may change or stop the
 * answer it leaves so, since a text without the frames that some drop is another one.
 *
 * Among a tool's arguments, which go on as they came, there is nothing that could stand for them: such a frame is no JSON.
 */
import { isObject, type JsonObject, parseObject } from '../json-value.ts'
import { isArgumentsObject } from '../texts/texts.ts'

/** A string as a whole, or one of these numbers. */
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|NaN|-?Infinity/g

/** The data of a frame with `null` for every such number; as it came where there is none. */
export const withoutNonFinite = (data: string): string => replaced(data, 'null')

const replaced = (data: string, instead: string): string =>
  data.includes('NaN') || data.includes('Infinity')
    ? data.replace(stringOrNumber, (found) => (found.startsWith('"') ? found : instead))
    : data

/** The object that a frame's data is; null where it is none. */
export function parseFrame(data: string): JsonObject | null {
  const parsed = parseObject(data)
  if (parsed !== null) return parsed
  const json = withoutNonFinite(data)
  if (json === data || asksNonFinite(parseObject(replaced(data, infinite)))) return null
  return parseObject(json)
}

/** A number that JSON has, and JavaScript reads as `Infinity`. */
const infinite = '1e999'

const deepest = 64

/** Whether such a number stands among a tool's arguments, or may: what is nested so deep is not looked at. */
function asksNonFinite(value: unknown, isAsked = false, depth = 0): boolean {
  if (typeof value === 'number') return isAsked && !Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return false
  if (depth > deepest) return true
  if (!isObject(value)) return Object.values(value).some((element) => asksNonFinite(element, isAsked, depth + 1))
  return Object.entries(value).some(([name, inner]) =>
    asksNonFinite(inner, isAsked || isArgumentsObject(name, inner, value), depth + 1),
  )
}
