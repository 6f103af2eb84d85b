/**
 * Where the members of a JSON object's outermost level stand in its bytes: so that one of them can be replaced while
 * every other byte stays as it was, and so that a name given twice is noticed. JSON.parse keeps the last of two, another
 * parser may keep the first, and a check made on one must not be answered by the other (RFC 8259 section 4).
 *
 * It reads structure only (strings, brackets, commas) and so says something useful of valid JSON alone: parse as well.
 * Its cost follows the number of tokens rather than of bytes, since strings are crossed by a native search.
 */
export interface JsonMembers {
  /** The first and past-the-last byte of each outermost member's value, by name. */
  values: ReadonlyMap<string, readonly [start: number, end: number]>
  /** An outermost name that occurs twice; null where none does. */
  repeated: string | null
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Throws `RangeError` where the nesting exceeds `maxDepth`. */
export function jsonMembers(bytes: Uint8Array, maxDepth: number): JsonMembers {
  const values = new Map<string, readonly [number, number]>()
  let repeated: string | null = null
  let depth = 0
  let name: string | null = null
  let valueStart = -1
  const endValue = (end: number) => {
    if (name === null || valueStart < 0) return
    if (values.has(name)) repeated ??= name
    values.set(name, trimmed(bytes, valueStart, end))
    name = null
    valueStart = -1
  }
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === quote) {
      const end = endOfString(bytes, index)
      if (depth === 1 && name === null) name = stringAt(bytes, index, end)
      index = end - 1
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1
      if (depth > maxDepth) throw new RangeError(`JSON is nested more than ${maxDepth} levels deep`)
    } else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 1) endValue(index)
      depth -= 1
    } else if (depth === 1 && byte === colon && valueStart < 0) valueStart = index + 1
    else if (depth === 1 && byte === comma) endValue(index)
  }
  return { values, repeated }
}

/** The same bytes with the value between `start` and `end` replaced. */
export function replaceBytes(
  bytes: Uint8Array,
  [start, end]: readonly [number, number],
  value: Uint8Array,
): Uint8Array {
  const replaced = new Uint8Array(bytes.length - (end - start) + value.length)
  replaced.set(bytes.subarray(0, start))
  replaced.set(value, start)
  replaced.set(bytes.subarray(end), start + value.length)
  return replaced
}

/** The index after the closing quote; the end of the bytes where there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1
  for (;;) {
    const found = bytes.indexOf(quote, at)
    if (found < 0) return bytes.length
    let slashes = 0
    while (bytes[found - 1 - slashes] === backslash) slashes += 1
    if (slashes % 2 === 0) return found + 1
    at = found + 1
  }
}

const decoder = new TextDecoder()

function stringAt(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, end))
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return String(JSON.parse(text))
  } catch {
    // Not valid JSON: parsing the whole says so; any name will do until then.
    return text
  }
}

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

function trimmed(bytes: Uint8Array, from: number, to: number): readonly [number, number] {
  let start = from
  let end = to
  while (start < end && isSpace(bytes[start])) start += 1
  while (end > start && isSpace(bytes[end - 1])) end -= 1
  return [start, end]
}
