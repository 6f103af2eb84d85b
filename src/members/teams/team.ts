/** The record of a team. Which teams' events a caller sees is decided in `events/visibility.ts`. */
import { timestamp } from '../../lib/clock.ts'
import type { teams } from '../../store/schema/ledger/people.ts'
import type { Team } from './team-resource.ts'

export type TeamRow = typeof teams.$inferSelect & { memberCount: number }

export const teamRecord = ({ id, name, memberCount, createdAt, version }: TeamRow): Team => ({
  id,
  name,
  member_count: memberCount,
  created_at: timestamp(createdAt),
  version,
})

/** The team that owns records without another owner (handbook/tokens.md). It keeps its name and cannot be deleted. */
export const defaultTeamName = 'default'
