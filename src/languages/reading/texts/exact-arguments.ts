/**
 * The arguments of tools that are objects are one text to policies, and go on as the bytes that came: what policies look
 * at must have the same digits. Of a body that holds a number which no double does, those objects are read exactly
 * (`src/lib/json/exact-json.ts`); all its other numbers stay doubles, for whoever calculates with them.
 */
import { holdsInexact, parseExactObject } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import { isArgumentsObject } from './texts.ts'

/** Puts them into `body`, just parsed from `text`; leaves it as it is where it is nested too deeply to be read so. */
export function readArgumentsExactly(body: JsonObject, text: string): void {
  if (mayHoldArguments(text) && holdsInexact(text)) takeFrom(body, parseExactObject(text))
}

/** False where nothing in it can be arguments: the names that tell them are missing, and no escape can spell them. */
const mayHoldArguments = (text: string): boolean =>
  text.includes('"arguments"') || text.includes('tool_use"') || text.includes('\\u')

function takeFrom(value: unknown, exact: unknown): void {
  if (Array.isArray(value) && Array.isArray(exact)) {
    for (const [index, inner] of value.entries()) takeFrom(inner, exact[index])
  } else if (isObject(value) && isObject(exact)) {
    for (const [name, inner] of Object.entries(value)) {
      if (isArgumentsObject(name, inner, value)) value[name] = exact[name]
      else takeFrom(inner, exact[name])
    }
  }
}
