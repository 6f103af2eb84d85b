/** Reading of parsed JSON whose shape nobody vouches for. */

export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** The object that a text holds; null where it is no JSON, or no object. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    // What is not JSON says nothing to the gateway; it is the client's to read, as it came.
    return null
  }
}

/** The objects of an array, which most often is nothing else; nothing where it is none. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  if (!Array.isArray(value)) return none
  return value.every(isObject) ? value : value.filter(isObject)
}

const none: readonly JsonObject[] = []

export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** No answer has as many tokens: a provider that reports more reports nothing, and sums of counts stay exact. */
const mostCounted = 1e12

/** A count as providers report it, some of them as a string of digits; null where the value is no possible count. */
export function countOf(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 && count <= mostCounted ? count : null
}

/** A provider's error as a code for events: its own code, else its type. */
export function errorCode(error: unknown): string {
  if (typeof error === 'string' && error !== '') return error
  if (!isObject(error)) return 'unknown'
  return textOf(error.code) ?? textOf(error.type) ?? 'unknown'
}
