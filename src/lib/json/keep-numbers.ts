/**
 * Writes a body that a policy changed as JSON again, and keeps the text of numbers that a double cannot hold
 * (`exact-json.ts`). The changed value is compared with the text, member by member:
 *
 * - Members whose names were changed, while only texts changed otherwise, are matched by position.
 * - A number takes the text at its place if both are equal as doubles; any other is a policy's own.
 * - In an array of another length, an element is matched to the one that it equals, or to the only one that differs
 *   in texts alone. Without a single match its numbers stay as they were parsed.
 *
 * It costs something only if a body was changed and contains such a number.
 */
import { holdsInexact, isObject, parseExactly } from './exact-json.ts'

/** JSON of `changed`, which was parsed from `text` and changed since. */
export const withNumbersOf = (text: string, changed: unknown): string =>
  JSON.stringify(holdsInexact(text) ? merged(changed, parseExactly(text)) : changed)

function merged(value: unknown, exact: unknown): unknown {
  if (JSON.isRawJSON(exact)) return isSameNumber(value, exact) ? exact : value
  if (Array.isArray(value)) return Array.isArray(exact) ? mergedArray(value, exact) : value
  if (!isObject(value) || !isObject(exact)) return value
  const placed = renamed(value, exact)
  return Object.fromEntries(
    Object.entries(value).map(([name, inner], place) => [
      name,
      merged(inner, placed === null ? own(exact, name) : placed[place]),
    ]),
  )
}

const own = (holder: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(holder, name) ? holder[name] : undefined

/** The text's value of each member in turn if the members are the same under other names; null if they are not. */
function renamed(value: Readonly<Record<string, unknown>>, exact: Readonly<Record<string, unknown>>): unknown[] | null {
  const [names, before] = [Object.keys(value), Object.keys(exact)]
  if (names.length !== before.length || names.every((name, place) => name === before[place])) return null
  const said = Object.values(exact)
  return names.every((name, place) => formOf(value[name]) === formOf(said[place])) ? said : null
}

function mergedArray(values: readonly unknown[], exact: readonly unknown[]): unknown[] {
  if (values.length === exact.length) return values.map((value, index) => merged(value, exact[index]))
  const [same, alike] = [placesOf(exact, spelt), placesOf(exact, shapeOf)]
  return values.map((value) => merged(value, same.get(spelt(value)) ?? alike.get(shapeOf(value))))
}

/** Each element by its key; undefined if several with one key differ. */
function placesOf(exact: readonly unknown[], keyOf: (value: unknown) => string): Map<string, unknown> {
  const places = new Map<string, unknown>()
  for (const one of exact) {
    const key = keyOf(one)
    const isAnother = places.has(key) && JSON.stringify(places.get(key)) !== JSON.stringify(one)
    places.set(key, isAnother ? undefined : one)
  }
  return places
}

const isSameNumber = (value: unknown, { rawJSON }: { rawJSON: string }): boolean => Object.is(value, Number(rawJSON))

/** A key of a value, its numbers as doubles. */
const spelt = (value: unknown): string => JSON.stringify(value, (_name, inner) => asDouble(inner))

/** A key of a value without its texts. */
const shapeOf = (value: unknown): string =>
  JSON.stringify(value, (_name, inner) => (typeof inner === 'string' ? '' : asDouble(inner)))

/** A key of a value without its texts and names. */
const formOf = (value: unknown): string =>
  JSON.stringify(value, (_name, inner) => {
    if (typeof inner === 'string') return ''
    return isObject(inner) ? Object.values(inner) : asDouble(inner)
  }) ?? ''

const asDouble = (value: unknown): unknown => (JSON.isRawJSON(value) ? Number(value.rawJSON) : value)
