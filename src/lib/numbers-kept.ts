/**
 * Writes a body that a policy changed as JSON again, with the numbers that a double cannot hold as the text had them
 * (`exact-json.ts`). What was changed is compared with what the text says, member by member:
 *
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
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, merged(inner, exact[name])]))
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

const asDouble = (value: unknown): unknown => (JSON.isRawJSON(value) ? Number(value.rawJSON) : value)
