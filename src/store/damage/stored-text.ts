/**
 * Text of rows that anybody who can write the file may have altered. libSQL's native part cuts a text at a NUL when it
 * gives it out, and ends the process where the bytes are no UTF-8; a blob it gives as it is. So such columns are selected
 * by `asBytes` and read by these.
 */

/** An SQL expression of a text as its bytes; a number comes as its digits. */
export const asBytes = (expression: string): string => `cast(${expression} as blob)`

/** The bytes of a column that was selected so; null where there are none. */
export function storedBytes(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value
  return value instanceof ArrayBuffer ? new Uint8Array(value) : null
}

/** Their text, or null where it is no UTF-8 or holds a NUL, which nothing that was written here does. */
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

/** Their text with U+FFFD for what is no UTF-8: to be shown. */
export const shownText = (value: unknown): string => loose.decode(storedBytes(value) ?? new Uint8Array())

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const loose = new TextDecoder('utf-8', { ignoreBOM: true })
