/**
 * Data that is no JSON object to who reads by the standard, and may be one to others: some read each line for itself,
 * some mend what they get (a comma behind it, a list around it, its end), some try it again with the data that follows.
 * An escape, or a text in several such objects, would hide there what is looked for.
 */
import { isRepetitive } from '../lib/json-members.ts'
import { type JsonObject, parseObject } from './json-value.ts'
import { dropLogprobs } from './logprobs.ts'
import { textsIn } from './texts.ts'
import { isKnownLabel } from './vocabulary.ts'

/** A member, up to the beginning of its value. */
const member = /["']\s*:\s*\S/
/** A string with an escape where JSON has one: first, or behind a bracket, comma or the like; prose has words there. */
const escapedString = /(?:^|[^\p{L}\p{N} \t])[ \t]*"[^"]*\\/u
const escapedUnit = /\\u[\da-f]{4}/i

/** The data of one stream that is no JSON object, in order. */
export class LooseJson {
  /** Some object, which later data may end. */
  #hasBegun = false

  /** Whether somebody may read it as JSON that says something. */
  mayBe(data: string): boolean {
    const ends = this.#hasBegun && data.includes('}')
    this.#hasBegun ||= data.includes('{')
    if (escapedString.test(data) || (data.includes('"') && escapedUnit.test(data))) return true
    return (ends || member.test(data)) && !isHarmlessBeginning(data)
  }
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
