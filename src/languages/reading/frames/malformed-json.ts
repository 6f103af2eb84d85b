/**
 * Data that is no JSON object to who reads by the standard, and may be one to others: some read each line for itself,
 * some mend what they get (a comma behind it, a list around it, its end), some try it again with the data that follows.
 * An escape, or a text in several such objects, would hide there what is looked for.
 *
 * Nobody takes for JSON what has words before its first bracket. Of what begins with one, that is an object which lacks
 * nothing but a mending, whatever it says, and any text in which the languages' own members stand: a client looks for
 * these alone. Without either it is read as it stands, as the plain text that it is to all.
 */
import { isRepetitive } from '../../../lib/json/json-members.ts'
import { isObject, type JsonObject, parseObject } from '../json-value.ts'
import { isKnownLabel } from '../texts/known-labels.ts'
import { dropLogprobs } from '../texts/logprobs.ts'
import { textsIn } from '../texts/texts.ts'

/** What stands before a bracket and is no word, but for the name of the field that is said twice. */
const beforeBracket = /^(?:[\s\uFEFF]*data:)*[^\p{L}\p{N}{[]*(?=[{[])/u
/** Words in brackets, which end there. */
const aside = /^[^"'{[\n]*[{[][^"'{}[\]\n]*[}\]][^"'{[\n]*$/
/** Members in which the languages' texts stand; a comment may follow their name. */
const ownMember = /(?:["']|[{,]\s*)(?:choices|delta|content|text|output|item|type)(?:["']|\s*:|\s*\/[*/])/
/** A string with an escape where JSON has one: first, or behind a bracket, comma or the like; prose has words there. */
const escapedString = /(?:^|[^\p{L}\p{N} \t])[ \t]*"[^"]*\\/u
/** One of the languages whose objects are written so. */
const escapedQuoted = /'[^']*\\[xuN\d]/
const escapedUnit = /\\u[\da-f]{4}/i
/** An escape of a letter or digit, which nobody's writer makes. */
const escapedWord = /(?<!\\)(?:\\\\)*\\u00(?:3\d|[46][1-9a-f]|[57][\da])/i

/** As much of earlier data as the name of a member, or a string with an escape, is looked for in. */
const keptUnits = 512

/** The data of one stream that is no JSON object, in order. */
export class MalformedJson {
  /** The end of what came since data that began an object, which later data may end; null before. */
  #begun: string | null = null
  /** An object of the language's words was let pass that lacks its end. */
  #lacksEnd = false

  /** Whether somebody may read it as JSON that says something else than it does as it stands. */
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

/** The string that data is to who reads it as JSON; null where it is none. */
export function stringOf(data: string): string | null {
  if (!/^\s*"/.test(data)) return null
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'string' ? value : null
  } catch {
    // A quotation: it is read as it stands.
    return null
  }
}

/** Whether it is objects, or a list with texts, but for what stands around them and between. */
function isMended(data: string): boolean {
  const end = Math.max(data.lastIndexOf('}'), data.lastIndexOf(']')) + 1
  if (end === 0 || word.test(data.slice(end))) return false
  const inside = data.slice(0, end).replace(beforeBracket, '').replace(betweenObjects, '},{')
  if (!/^[{[]/.test(inside)) return false
  try {
    return holdsText(JSON.parse(`[${inside}]`))
  } catch {
    // No mending makes it JSON.
    return false
  }
}

const word = /[\p{L}\p{N}"]/u
const betweenObjects = /\}[\s,]*\{/g

/** Whether an object or a string is among the elements of a list, or of one in it. */
function holdsText(list: unknown): boolean {
  if (!Array.isArray(list)) return isObject(list) || typeof list === 'string'
  return list.some(holdsText)
}

/** Whether an object lacks nothing but its end, and says only words of the languages, as a stream's first event. */
function isHarmlessBeginning(data: string): boolean {
  const said = withEnd(data)
  if (said === null || isRepetitive(data, said) || dropLogprobs(said)) return false
  return textsIn(said).every(({ text }) => isKnownLabel(text))
}

const deepest = 32

/** The object whose end is missing; null where it is none. There is no escape in it. */
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
