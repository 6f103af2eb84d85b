/** Which members of a request's body limit its output: what a clamp writes. */
import { type Family, membersWith } from '../families.ts'
import { isGiven } from './json-value.ts'

/**
 * Those that the caller gave, because a provider may follow any; the first of the family's where it gave none. Empty
 * where the family has none.
 */
export function outputLimitMembers(family: Family, body: Readonly<Record<string, unknown>>): readonly string[] {
  const names = membersWith(family, 'output limit')
  if (names.length < 2) return names
  const given = names.filter((name) => isGiven(body[name]))
  return given.length > 0 ? given : names.slice(0, 1)
}
