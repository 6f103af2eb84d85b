/**
 * The places of texts, as `textsIn` names them, written and read back. Providers choose member names, so separators
 * in them are escaped: otherwise two texts could have the same place and each be a part of the other.
 */
import { isObject, type JsonObject } from '../json-value.ts'

const separator = /[%/[#~]/
const separators = /[%/[#~]/g

/** A member's name as a step of a place. */
export function stepOfName(name: string): string {
  if (name === '') return empty
  return separator.test(name) ? name.replaceAll(separators, (unit) => `%${unit.charCodeAt(0).toString(16)}`) : name
}

/** The member name of a step. */
const nameOfStep = (step: string): string =>
  step === empty
    ? ''
    : step.replace(/%([\da-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

const empty = '%'

/** The outermost member of a place: `citations` of `citations#0`. */
export const outermost = (place: string): string => nameOfStep(/^[^/[#~]*/.exec(place)?.[0] ?? place)

const step = /^(.*?)(?:\[(-?\d+)\]|#(\d+)|~(.+))?$/

/** An object that contains only one text, at its place. */
export function objectWith(place: string, text: string): JsonObject {
  let value: unknown = text
  for (const part of place.split('/').toReversed()) {
    const [, key = part, index, position, type] = step.exec(part) ?? []
    if (index !== undefined) value = [{ index: Number(index), ...(isObject(value) ? value : {}) }]
    else if (type !== undefined) value = [{ type, ...(isObject(value) ? value : {}) }]
    else if (position !== undefined) value = [...Array.from({ length: Number(position) }, () => ({})), value]
    value = { [nameOfStep(key)]: value }
  }
  return isObject(value) ? value : {}
}
