/** Teams: their record. Which teams' events a caller sees is decided in `events/visibility.ts`. */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import type { teams } from '../../store/schema/ledger/people.ts'

export type TeamRow = typeof teams.$inferSelect & { memberCount: number }

export const teamSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  member_count: z.number().int(),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type Team = z.infer<typeof teamSchema>

export const teamRecord = ({ id, name, memberCount, createdAt, version }: TeamRow): Team => ({
  id,
  name,
  member_count: memberCount,
  created_at: timestamp(createdAt),
  version,
})

/** The team that owns what has no other owner (handbook/tokens.md); it keeps its name and cannot be deleted. */
export const defaultTeamName = 'default'
