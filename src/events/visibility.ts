/** Which events a caller sees, in query, export and jobs alike (contract section 9, "Who sees what"). */
import type { Principal } from '../tokens/principal.ts'

export interface Visibility {
  /** The teams whose events are seen; `every` stands for all events, those without a team included. */
  teams: 'every' | readonly string[]
  /** The token whose own events are seen, whatever team they belong to: set where the token sees no team. */
  ownToken: string | null
}

const seesEveryTeam = new Set(['owner', 'admin', 'auditor'])

/**
 * A token sees the events of its team; without one those of its user's teams; without either all, if its role says so.
 * A person's session sees all, if the role says so, otherwise the events of the person's teams. A token that sees no team
 * sees its own events.
 */
export function visibilityOf(principal: Principal, teamsOfUser: readonly string[]): Visibility {
  const { kind, tokenId, teamId, userId, roles } = principal
  if (kind !== 'session' && kind !== 'token') return { teams: [], ownToken: null }
  const bound = kind === 'token' && (teamId !== null || userId !== null)
  if (!bound && roles.some((role) => seesEveryTeam.has(role))) return { teams: 'every', ownToken: null }
  const teams = teamId === null ? teamsOfUser : [teamId]
  return { teams, ownToken: teams.length === 0 ? tokenId : null }
}

/** Whether somebody who sees so much now may see all that was gathered for somebody who saw `made`. */
export const covers = (present: Visibility, made: Visibility): boolean => {
  if (present.teams === 'every') return true
  if (made.teams === 'every' || (made.ownToken !== null && made.ownToken !== present.ownToken)) return false
  return new Set(made.teams).isSubsetOf(new Set(present.teams))
}
