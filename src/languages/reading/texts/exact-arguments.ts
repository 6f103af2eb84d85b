/**
 * Policies read tool arguments that are an object as one text, and the arguments are passed on as the bytes that
 * came: both must have the same digits. If a body holds a number that no double can hold, these objects are read
 * exactly (`src/lib/json/exact-json.ts`); all its other numbers stay doubles, for calculations.
 */
import { holdsInexact, parseExactObject } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import { isArgumentsObject } from './texts.ts'

/**
 * Puts them into `body`, just parsed from `text`; leaves it unchanged if it is nested too deeply for the exact reader.
 */
export function readArgumentsExactly(body: JsonObject, text: string): void {
  if (mayHoldArguments(text) && holdsInexact(text)) takeFrom(body, parseExactObject(text))
}

/** False if nothing in it can be arguments: the names that mark them are missing, and no escape can spell them. */
const mayHoldArguments = (text: string): boolean =>
  text.includes('"arguments"') || text.includes('"args"') || text.includes('tool_use"') || text.includes('\\u')

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
