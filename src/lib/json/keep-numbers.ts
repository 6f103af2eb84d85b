/**
 * Writes a body that a policy changed as JSON again, with the numbers that a double cannot hold as the text had them
 * (`exact-json.ts`). What was changed is compared with what the text says, member by member:
 *
 * - Members whose names were changed, and nothing else but texts, are those at their places.
 * - A number stands for the one at its place where both are the same to a double; any other is a policy's own.
 * - Of an array that is longer or shorter now, an element is the one that it equals, or the only one that says the same
 *   but for its texts. Where none does, or several do, its numbers are as they were parsed.
 *
 * It costs something only where a body is changed and holds such a number.
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

/** What the text says of each member in turn, where they are the same ones under other names; null where they are not. */
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

/** Each element by its key; undefined where several of one key are not the same. */
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

/** What a value says, its numbers as doubles. */
const spelt = (value: unknown): string => JSON.stringify(value, (_name, inner) => asDouble(inner))

/** What a value says but for its texts. */
const shapeOf = (value: unknown): string =>
  JSON.stringify(value, (_name, inner) => (typeof inner === 'string' ? '' : asDouble(inner)))

/** What a value says but for its texts and names. */
const formOf = (value: unknown): string =>
  JSON.stringify(value, (_name, inner) => {
    if (typeof inner === 'string') return ''
    return isObject(inner) ? Object.values(inner) : asDouble(inner)
  }) ?? ''

const asDouble = (value: unknown): unknown => (JSON.isRawJSON(value) ? Number(value.rawJSON) : value)
