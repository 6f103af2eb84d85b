/** Which events a caller sees, in query, export and jobs alike (events/README.md). */
import type { Principal } from '../identity/principal.ts'

export interface Visibility {
  /** The teams whose events are seen; `every` stands for all events, those without a team included. */
  teams: 'every' | readonly string[]
  /** Where no team is seen: the tokens whose events are seen nevertheless, since they are the caller's own. */
  ownTokens: readonly string[]
}

const seesEveryTeam = new Set(['owner', 'admin', 'auditor'])

/**
 * A token sees the events of its team; without one those of its user's teams; without either all, if its role says so.
 * A person's session sees all, if the role says so, otherwise the events of the person's teams. Who sees no team sees
 * their own: a token those of itself, a person those of the tokens that are bound to them.
 */
export function visibilityOf(
  principal: Principal,
  ofUser: { teams: readonly string[]; tokens: readonly string[] },
): Visibility {
  const { kind, tokenId, teamId, userId, roles } = principal
  if (kind !== 'session' && kind !== 'token') return { teams: [], ownTokens: [] }
  const bound = kind === 'token' && (teamId !== null || userId !== null)
  if (!bound && roles.some((role) => seesEveryTeam.has(role))) return { teams: 'every', ownTokens: [] }
  const teams = teamId === null ? ofUser.teams : [teamId]
  const own = tokenId === null ? ofUser.tokens : [tokenId]
  return { teams, ownTokens: teams.length === 0 ? own : [] }
}

/** Whether somebody who sees so much now may see all that was gathered for somebody who saw `made`. */
export const covers = (present: Visibility, made: Visibility): boolean => {
  if (present.teams === 'every') return true
  if (made.teams === 'every') return false
  return within(made.teams, present.teams) && within(made.ownTokens, present.ownTokens)
}

const within = (some: readonly string[], all: readonly string[]): boolean => new Set(some).isSubsetOf(new Set(all))
