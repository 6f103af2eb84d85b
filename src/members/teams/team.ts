/** The record of a team. Which teams' events a caller sees is decided in `events/visibility.ts`. */
import { timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { Team } from './team-resource.ts'

export interface TeamRow {
  id: string
  name: string
  created_at: number
  version: number
  member_count: number
}

export const teamColumns = `t.id, t.name, t.created_at, t.version,
  (select count(*) from memberships m where m.team_id = t.id) as member_count`

export const teamRecord = ({ id, name, member_count, created_at, version }: TeamRow): Team => ({
  id,
  name,
  member_count,
  created_at: timestamp(created_at),
  version,
})

export async function findTeam(ledger: Database, id: string): Promise<TeamRow | null> {
  const [row] = await ledger.read<TeamRow>(`select ${teamColumns} from teams t where t.id = ?`, [id])
  return row ?? null
}

/** The team that owns records without another owner (handbook/tokens.md). It keeps its name and cannot be deleted. */
export const defaultTeamName = 'default'
