/** Which events a caller sees, in query, export and jobs (events/README.md). */
import type { Principal } from '../identity/principal.ts'

export interface Visibility {
  /** The visible teams; `every` means all events, including those without a team. */
  teams: 'every' | readonly string[]
  /** If no team is visible: the tokens whose events are visible because they are the caller's own. */
  ownTokens: readonly string[]
  /** Whether the caller sees what a policy withheld until a person decides (`query/withheld.ts`); absent: no. */
  withheld?: true
}

const seesEveryTeam = new Set(['owner', 'admin', 'auditor'])

/**
 * A token sees the events of its team; without one those of its user's teams; without either all, if its role allows
 * that. A person's session sees all, if the role allows that, otherwise the events of the person's teams. A caller
 * without any team sees its own: a token its own events, a person those of the tokens bound to them.
 */
export function visibilityOf(
  principal: Principal,
  ofUser: { teams: readonly string[]; tokens: readonly string[] },
): Visibility {
  const { kind, tokenId, teamId, userId, roles, permissions } = principal
  if (kind !== 'session' && kind !== 'token') return { teams: [], ownTokens: [] }
  const seen: Pick<Visibility, 'withheld'> = permissions.has('escalations:read') ? { withheld: true } : {}
  const bound = kind === 'token' && (teamId !== null || userId !== null)
  if (!bound && roles.some((role) => seesEveryTeam.has(role))) return { teams: 'every', ownTokens: [], ...seen }
  const teams = teamId === null ? ofUser.teams : [teamId]
  const own = tokenId === null ? ofUser.tokens : [tokenId]
  return { teams, ownTokens: teams.length === 0 ? own : [], ...seen }
}

/** Whether a caller with this visibility may see everything that was gathered with the visibility `made`. */
export const covers = (present: Visibility, made: Visibility): boolean => {
  if (made.withheld === true && present.withheld !== true) return false
  if (present.teams === 'every') return true
  if (made.teams === 'every') return false
  return within(made.teams, present.teams) && within(made.ownTokens, present.ownTokens)
}

const within = (some: readonly string[], all: readonly string[]): boolean => new Set(some).isSubsetOf(new Set(all))
