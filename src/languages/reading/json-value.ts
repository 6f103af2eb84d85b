/** Reads parsed JSON of unchecked shape. */

export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** The object in a text; null if it is not JSON, or not an object. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    // The gateway ignores data that is not JSON and passes it on unchanged.
    return null
  }
}

/** The objects of an array; empty if the value is not an array. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  if (!Array.isArray(value)) return none
  return value.every(isObject) ? value : value.filter(isObject)
}

const none: readonly JsonObject[] = []

export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** More tokens than any answer has: a larger report is ignored, and sums of counts stay exact. */
const mostCounted = 1e12

/** A count as providers report it, sometimes as a string of digits; null if the value is not a possible count. */
export function countOf(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 && count <= mostCounted ? count : null
}

/** A provider's error code for events: its own code, else its type. */
export function errorCode(error: unknown): string {
  if (typeof error === 'string' && error !== '') return error
  if (!isObject(error)) return 'unknown'
  return textOf(error.code) ?? textOf(error.type) ?? 'unknown'
}
