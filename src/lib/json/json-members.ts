/**
 * Finds the members of a JSON object's outermost level in its text, so that one of them can be replaced while
 * everything else stays unchanged, and so that a name given twice is noticed. JSON.parse keeps the last of two,
 * another parser may keep the first, and then a check on one value would not cover the other (RFC 8259 section 4).
 * Names that differ only in letter case count as equal, because some parsers match names like that.
 *
 * It reads structure only (strings, brackets, commas), so its result is only meaningful for valid JSON: parse the
 * text as well. Its cost follows the number of tokens rather than of characters, since strings are crossed by a
 * native search.
 */
import { isExactNumber } from './exact-json.ts'
import { endOfString } from './string-end.ts'

export interface JsonMembers {
  /** The outermost names in order, with the place of each opening quote and of the value, white space included. */
  names: readonly string[]
  nameStarts: readonly number[]
  spans: readonly Span[]
  /** Whether an outermost name occurs twice, in whatever letter case. */
  repeated: boolean
  /** How many members there are at every depth: more than in a parsed tree if a name is given twice. */
  count: number
}

type Span = readonly [start: number, end: number]

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Throws `RangeError` if the nesting exceeds `maxDepth`. */
export function jsonMembers(text: string, maxDepth: number): JsonMembers {
  const names: string[] = []
  const nameStarts: number[] = []
  let seen: Set<string> | null = null
  const spans: Span[] = []
  let repeated = false
  let count = 0
  let depth = 0
  /** The start of the current value; negative while a name is expected. */
  let valueStart = -1
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index)
    if (character === quote) {
      const end = endOfString(text, index)
      if (depth === 1 && valueStart < 0 && names.length === spans.length) {
        const name = nameOf(text, index, end)
        const plain = name.toLowerCase()
        if (names.length === fewNames) seen = new Set(names.map((each) => each.toLowerCase()))
        repeated ||= seen === null ? isAmong(names, plain) : seen.has(plain)
        seen?.add(plain)
        names.push(name)
        nameStarts.push(index)
      }
      index = end - 1
    } else if (character === openBrace || character === openBracket) {
      depth += 1
      if (depth > maxDepth) throw new RangeError(`JSON is nested more than ${maxDepth} levels deep`)
    } else if (depth === 1 && valueStart >= 0 && (character === comma || character === closeBrace)) {
      spans.push([valueStart, index])
      valueStart = -1
      if (character === closeBrace) depth -= 1
    } else if (character === closeBrace || character === closeBracket) depth -= 1
    else if (character === colon) {
      count += 1
      if (depth === 1 && valueStart < 0) valueStart = index + 1
    }
  }
  return { names, nameStarts, spans, repeated, count }
}

/** Below this number a linear search is faster than a set. */
const fewNames = 8

function isAmong(names: readonly string[], plain: string): boolean {
  for (const name of names) if (name === plain || name.toLowerCase() === plain) return true
  return false
}

/** Whether an object in a JSON text has a member twice, at any depth; `parsed` is the text's parsed value. */
export function isRepetitive(text: string, parsed: unknown): boolean {
  const count = memberCount(parsed)
  // Each member has a colon and strings may have more: if there are only as many colons as members, no name is given
  // twice.
  return colonsIn(text) !== count && jsonMembers(text, Number.POSITIVE_INFINITY).count !== count
}

/**
 * The path of the first member whose object has an earlier member of that name; null if there is none. Names are
 * compared as JSON reads them, so `\u0061` is `a`; letter case counts. `text` is valid JSON.
 */
export function repeatedMember(text: string): readonly string[] | null {
  /** The open objects and lists, outermost first; `at` is the current member or element. */
  const open: { names: Set<string> | null; at: string }[] = []
  let awaitsName = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index)
    const inner = open.at(-1)
    if (character === quote) {
      const end = endOfString(text, index)
      if (awaitsName && inner !== undefined && inner.names !== null) {
        inner.at = nameOf(text, index, end)
        if (inner.names.has(inner.at)) return open.map(({ at }) => at)
        inner.names.add(inner.at)
        awaitsName = false
      }
      index = end - 1
    } else if (character === openBrace || character === openBracket) {
      awaitsName = character === openBrace
      open.push(awaitsName ? { names: new Set(), at: '' } : { names: null, at: '0' })
    } else if (character === closeBrace || character === closeBracket) {
      open.pop()
      awaitsName = false
    } else if (character === comma && inner !== undefined) {
      awaitsName = inner.names !== null
      if (inner.names === null) inner.at = String(Number(inner.at) + 1)
    }
  }
  return null
}

function colonsIn(text: string): number {
  let count = 0
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) count += 1
  return count
}

/** How many members a parsed value has, at every depth. */
export function memberCount(value: unknown): number {
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return 0
  let count = 0
  if (Array.isArray(value)) for (const element of value) count += memberCount(element)
  else {
    for (const name in value) {
      count += 1
      const inner: unknown = Reflect.get(value, name)
      if (typeof inner === 'object') count += memberCount(inner)
    }
  }
  return count
}

/**
 * The same text with some outermost members changed and every other byte of the others kept: a name's edit is JSON text
 * that replaces its value, or null to leave the member out with its comma; a name that is not there is added at the
 * end. `members` are those of exactly this text, none of them repeated.
 */
export function editMembers(text: string, members: JsonMembers, edits: ReadonlyMap<string, string | null>): string {
  const { names, nameStarts, spans } = members
  const first = nameStarts[0] ?? text.indexOf('{') + 1
  let edited = text.slice(0, first)
  let kept = 0
  let previousEnd = first
  for (const [index, name] of names.entries()) {
    const [start, end] = trimmed(text, spans[index] ?? [first, first])
    const json = edits.get(name)
    if (json !== null) {
      // Between two members stands their comma; what precedes the first one kept is the brace.
      if (kept > 0) edited += text.slice(previousEnd, nameStarts[index])
      edited += json === undefined ? text.slice(nameStarts[index], end) : text.slice(nameStarts[index], start) + json
      kept += 1
    }
    previousEnd = end
  }
  for (const [name, json] of edits) {
    if (json === null || names.includes(name)) continue
    edited += `${kept > 0 ? ',' : ''}${JSON.stringify(name)}:${json}`
    kept += 1
  }
  return edited + text.slice(previousEnd)
}

/** The JSON text of a member's value, without the white space around it; empty if there is no such member. */
export function memberText(text: string, { names, spans }: JsonMembers, name: string): string {
  const span = spans[names.indexOf(name)]
  return span === undefined ? '' : text.slice(...span).trim()
}

/** A value's place without the white space around it. */
function trimmed(text: string, [start, end]: Span): Span {
  const value = text.slice(start, end)
  return [end - value.trimStart().length, start + value.trimEnd().length]
}

/** The name whose quotes stand at `start` and before `end`. */
function nameOf(text: string, start: number, end: number): string {
  const name = text.slice(start + 1, end - 1)
  if (!name.includes('\\')) return name
  try {
    return String(JSON.parse(text.slice(start, end)))
  } catch {
    // Not valid JSON: parsing the whole reports that; until then any name will do.
    return name
  }
}
