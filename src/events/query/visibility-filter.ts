/** What a caller sees of the log, as a condition of its queries. */
import type { FacetFilter } from '../log/read-log.ts'
import type { Visibility } from '../visibility.ts'

/** No condition for who sees everything; `nothing` for who sees no event at all. */
export function visibilityFilter({ teams, ownTokens }: Visibility): FacetFilter[] | 'nothing' {
  if (teams === 'every') return []
  if (teams.length > 0) return [{ facet: 'team', values: teams }]
  return ownTokens.length > 0 ? [{ facet: 'token', values: ownTokens }] : 'nothing'
}
