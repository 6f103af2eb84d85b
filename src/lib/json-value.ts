/** Reading JSON that somebody else wrote: nothing is taken for granted, and what is not there is null. */
export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value of a text, or undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Whoever sent it may send what it likes; that it says nothing to us is the answer.
    return undefined
  }
}

/** A whole number that is not negative, as counts of tokens are; null for everything else. */
export const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

/** A whole number from 1 up, as `n` and limits are; null for everything else. */
export const positiveOf = (value: unknown): number | null => (value === 0 ? null : countOf(value))
