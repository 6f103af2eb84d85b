/**
 * Data that is not a JSON object for standard parsers, and may be one for others: some read each line by itself, some
 * repair the data (a comma behind it, a list around it, its end), some try again with the next data. An escape, or a
 * text split over several such objects, could hide a forbidden text from policies.
 *
 * No parser takes data for JSON if words come before its first bracket. Data that begins with a bracket counts as an
 * object if it lacks only a repair, or if any of the languages' own members are in it: a client looks for these
 * alone. All other data is read unchanged, as the plain text that it is for everyone.
 */
import { isRepetitive } from '../../../lib/json/json-members.ts'
import { isObject, type JsonObject, parseObject } from '../json-value.ts'
import { isKnownLabel } from '../texts/known-labels.ts'
import { dropLogprobs } from '../texts/logprobs.ts'
import { textsIn } from '../texts/texts.ts'

/** Characters before a bracket that are not words, except the name of the field if it is repeated. */
const beforeBracket = /^(?:[\s\uFEFF]*data:)*[^\p{L}\p{N}{[]*(?=[{[])/u
/** Words in brackets, which end there. */
const aside = /^[^"'{[\n]*[{[][^"'{}[\]\n]*[}\]][^"'{[\n]*$/
/** Members in which the languages' texts are; a comment may follow their name. */
const ownMember = /(?:["']|[{,]\s*)(?:choices|delta|content|text|output|item|type)(?:["']|\s*:|\s*\/[*/])/
/** A string with an escape where JSON has one: first, or after a bracket, comma or the like; prose has words there. */
const escapedString = /(?:^|[^\p{L}\p{N} \t])[ \t]*"[^"]*\\/u
/** An object written in the form of one of the languages. */
const escapedQuoted = /'[^']*\\[xuN\d]/
const escapedUnit = /\\u[\da-f]{4}/i
/** An escape of a letter or digit, which no JSON writer produces. */
const escapedWord = /(?<!\\)(?:\\\\)*\\u00(?:3\d|[46][1-9a-f]|[57][\da])/i

/** How much of the earlier data is searched for the name of a member, or a string with an escape. */
const keptUnits = 512

/** The data of one stream that is not a JSON object, in order. */
export class MalformedJson {
  /** The end of the data since the one that began an object, which later data may complete; null before. */
  #begun: string | null = null
  /** An incomplete object in the language's words has been passed on. */
  #lacksEnd = false

  /** Whether some parser may read it as JSON with another meaning than its plain text. */
  mayBe(data: string): boolean {
    if (stringOf(data) !== null) return escapedWord.test(data)
    if (data.includes('"') && escapedUnit.test(data)) return true
    const lines = data.includes('\n') ? data.split('\n') : [data]
    const begins = lines.some((line) => beforeBracket.test(line)) && !aside.test(data)
    if (!begins && this.#begun === null) return false
    if (!data.includes('\\') && isHarmlessBeginning(data)) {
      this.#begun ??= ''
      this.#lacksEnd = true
      return false
    }
    if (begins && escapedQuoted.test(data)) return true
    const said = (this.#begun ?? '') + data
    this.#begun = said.slice(-keptUnits)
    if ((this.#lacksEnd && data.includes('}')) || escapedString.test(said) || ownMember.test(said)) return true
    return lines.some(isMended) || isMended(data)
  }
}

/** The string that data is for a JSON parser; null if it is not a string. */
export function stringOf(data: string): string | null {
  if (!/^\s*"/.test(data)) return null
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'string' ? value : null
  } catch {
    // A quotation: it is read as plain text.
    return null
  }
}

/** Whether it consists of objects, or of a list with texts, apart from the characters around and between them. */
function isMended(data: string): boolean {
  const end = Math.max(data.lastIndexOf('}'), data.lastIndexOf(']')) + 1
  if (end === 0 || word.test(data.slice(end))) return false
  const inside = data.slice(0, end).replace(beforeBracket, '').replace(betweenObjects, '},{')
  if (!/^[{[]/.test(inside)) return false
  try {
    return holdsText(JSON.parse(`[${inside}]`))
  } catch {
    // No repair makes it JSON.
    return false
  }
}

const word = /[\p{L}\p{N}"]/u
const betweenObjects = /\}[\s,]*\{/g

/** Whether a list, or a list in it, has an object or a string as an element. */
function holdsText(list: unknown): boolean {
  if (!Array.isArray(list)) return isObject(list) || typeof list === 'string'
  return list.some(holdsText)
}

/** Whether an object lacks only its end and contains only the languages' own words, like a stream's first event. */
function isHarmlessBeginning(data: string): boolean {
  const said = withEnd(data)
  if (said === null || isRepetitive(data, said) || dropLogprobs(said)) return false
  return textsIn(said).every(({ text }) => isKnownLabel(text))
}

const deepest = 32

/** The object whose end is missing; null if it is not one. There is no escape in it. */
function withEnd(data: string): JsonObject | null {
  const open: string[] = []
  let inString = false
  for (const unit of data) {
    if (unit === '"') inString = !inString
    else if (inString) continue
    else if (unit === '{') open.push('}')
    else if (unit === '[') open.push(']')
    else if (unit === '}' || unit === ']') open.pop()
    if (open.length > deepest) return null
  }
  return parseObject(data + (inString ? '"' : '') + open.reverse().join(''))
}
