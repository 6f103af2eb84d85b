/** Which events a caller sees, in query, export and jobs alike (contract section 9, "Who sees what"). */
import type { Principal } from '../tokens/principal.ts'

export interface Visibility {
  /** The teams whose events are seen. */
  teams: 'every' | readonly string[]
  /** Whether events that belong to no team are seen. */
  withoutTeam: boolean
}

const seesEveryTeam = new Set(['owner', 'admin', 'auditor'])
const seesWithoutTeam = new Set(['owner', 'admin'])

/**
 * A token sees its own team; without one the teams of its user; without either, by role, every team or none. A person's
 * session sees by role every team, otherwise the person's own; an owner's or admin's also what belongs to no team.
 */
export function visibilityOf(principal: Principal, teamsOfUser: readonly string[]): Visibility {
  const every = principal.roles.some((role) => seesEveryTeam.has(role))
  if (principal.kind === 'session') {
    const withoutTeam = principal.roles.some((role) => seesWithoutTeam.has(role))
    return { teams: every ? 'every' : teamsOfUser, withoutTeam }
  }
  if (principal.kind !== 'token') return { teams: [], withoutTeam: false }
  if (principal.teamId !== null) return { teams: [principal.teamId], withoutTeam: false }
  if (principal.userId !== null) return { teams: teamsOfUser, withoutTeam: false }
  return { teams: every ? 'every' : [], withoutTeam: false }
}

/** Whether somebody who sees so much now may see all that was gathered for somebody who saw `made`. */
export const covers = (present: Visibility, made: Visibility): boolean =>
  (present.withoutTeam || !made.withoutTeam) &&
  (present.teams === 'every' || (made.teams !== 'every' && new Set(made.teams).isSubsetOf(new Set(present.teams))))
