/**
 * Reads text of rows that anyone with write access to the file may have altered. libSQL's native part cuts a text at
 * a NUL and ends the process if the bytes are not valid UTF-8; it returns a blob unchanged. So such columns are
 * selected with `asBytes` and read by these functions.
 */

/** An SQL expression of a text as its bytes; a number comes as its digits. */
export const asBytes = (expression: string): string => `cast(${expression} as blob)`

/** The bytes of a column that was selected with `asBytes`; null if there are none. */
export function storedBytes(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value
  return value instanceof ArrayBuffer ? new Uint8Array(value) : null
}

/** Their text; null if it is not valid UTF-8 or contains a NUL, which this product never writes. */
export function storedText(value: unknown): string | null {
  const bytes = storedBytes(value)
  if (bytes === null || bytes.includes(0)) return null
  try {
    return strict.decode(bytes)
  } catch {
    // Not UTF-8.
    return null
  }
}

/** Their text for display, with U+FFFD for invalid UTF-8. */
export const shownText = (value: unknown): string => loose.decode(storedBytes(value) ?? new Uint8Array())

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const loose = new TextDecoder('utf-8', { ignoreBOM: true })
