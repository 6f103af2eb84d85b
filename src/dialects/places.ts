/** The places of texts, as `textsIn` names them, read back. */
import { isObject, type JsonObject } from './json-value.ts'

/** The outermost member of a place: `citations` of `citations#0`. */
export const outermost = (place: string): string => /^[^/[#~]*/.exec(place)?.[0] ?? place

const step = /^(.*?)(?:\[(\d+)\]|#(\d+)|~(.+))?$/

/** An object in which nothing but one text stands, at its place. */
export function objectWith(place: string, text: string): JsonObject {
  let value: unknown = text
  for (const part of place.split('/').toReversed()) {
    const [, key = part, index, position, type] = step.exec(part) ?? []
    if (index !== undefined) value = [{ index: Number(index), ...(isObject(value) ? value : {}) }]
    else if (type !== undefined) value = [{ type, ...(isObject(value) ? value : {}) }]
    else if (position !== undefined) value = [...Array.from({ length: Number(position) }, () => ({})), value]
    value = { [key]: value }
  }
  return isObject(value) ? value : {}
}
