/** Which members of a request's body limit its output: what a clamp writes. */
import { type Family, familyNames, membersWith } from '../families.ts'
import { isGiven } from './json-value.ts'

/** A list for each single member of a family, so that no array is created for a request. */
const alone: ReadonlyMap<Family, readonly (readonly string[])[]> = new Map(
  familyNames.map((family) => [family, membersWith(family, 'output limit').map((name) => [name])]),
)

/**
 * Every member that the caller gave, because a provider may follow any; the first of the family's if it gave none.
 * Empty if the family has none.
 */
export function outputLimitMembers(family: Family, body: Readonly<Record<string, unknown>>): readonly string[] {
  const names = membersWith(family, 'output limit')
  if (names.length < 2) return names
  let given = -1
  for (let at = 0; at < names.length; at++) {
    if (!isGiven(body[names[at] ?? ''])) continue
    if (given >= 0) return names.filter((name) => isGiven(body[name]))
    given = at
  }
  return alone.get(family)?.[Math.max(0, given)] ?? names
}
