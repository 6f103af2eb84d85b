/** The queries of teams and of who is in them. */
import { and, eq, getTableColumns, gt, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, isNamed, query, remove, statement, update } from '../../store/query.ts'
import { memberships, teams, users } from '../../store/schema/ledger/people.ts'
import { scimGroups } from '../../store/schema/ledger/scim.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import type { Statement } from '../../store/statement.ts'
import type { TeamRow } from './team.ts'

const columns = {
  ...getTableColumns(teams),
  memberCount: sql<number>`(select count(*) from ${memberships} where ${eq(memberships.teamId, teams.id)})`,
}

export const findTeam = async (ledger: Database, id: string): Promise<TeamRow | null> =>
  (await query(ledger).select(columns).from(teams).where(eq(teams.id, id)).get()) ?? null

/** A page of teams in the order they were made, after the id `start`. */
export const listTeams = (
  ledger: Database,
  { name, visible, start, count }: { name: string | undefined; visible: SQL | undefined; start: string; count: number },
): Promise<TeamRow[]> =>
  query(ledger)
    .select(columns)
    .from(teams)
    .where(and(gt(teams.id, start), isNamed(name, { id: teams.id, names: [teams.name] }), visible))
    .orderBy(teams.id)
    .limit(count)

export const addTeam = (team: typeof teams.$inferInsert): Statement => statement(insert(teams).values(team))

const isUnchanged = ({ id, version }: TeamRow): Statement =>
  guard(hasRow(teams, and(eq(teams.id, id), eq(teams.version, version))))

/** Renames a team that is still as it was read. */
export const changeTeamName = (team: TeamRow, name: string): Statement[] => [
  isUnchanged(team),
  statement(
    update(teams)
      .set({ name, version: sql`${teams.version} + 1` })
      .where(eq(teams.id, team.id)),
  ),
]

/** Deletes a team that is still as it was read, and not in use. */
export const deleteTeam = (team: TeamRow, now: number): Statement[] => [
  isUnchanged(team),
  guard(sql`not ${inUse(team.id, now)}`),
  statement(remove(scimGroups).where(eq(scimGroups.teamId, team.id))),
  statement(remove(teams).where(eq(teams.id, team.id))),
]

/** Whether a team has members or tokens in force. */
const inUse = (id: string, now: number): SQL =>
  sql`(${hasRow(memberships, eq(memberships.teamId, id))} or ${hasRow(
    tokens,
    and(
      or(eq(tokens.teamId, id), and(eq(tokens.ownerKind, 'team'), eq(tokens.ownerId, id))),
      isNull(tokens.revokedAt),
      or(isNull(tokens.rotatedAt), gt(tokens.rotatedAt, now)),
      or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now)),
    ),
  )})`

export const isInUse = async (ledger: Database, id: string, now: number): Promise<boolean> =>
  (await query(ledger).$count(teams, and(eq(teams.id, id), inUse(id, now)))) > 0

export type MembershipRow = Awaited<ReturnType<typeof listMembers>>[number]

/** A page of a team's members in the order of their ids, after the id `start`; or the member `userId` alone. */
export function listMembers(
  ledger: Database,
  { teamId, userId, start = '', count = 1 }: { teamId: string; userId?: string; start?: string; count?: number },
) {
  const { id, email, name, role, status } = users
  return query(ledger)
    .select({ id, teamId: memberships.teamId, email, name, role, status, addedAt: memberships.createdAt })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(memberships.teamId, teamId), gt(id, start), userId === undefined ? undefined : eq(id, userId)))
    .orderBy(id)
    .limit(count)
}

export const addMember = (membership: typeof memberships.$inferInsert): Statement =>
  statement(insert(memberships).values(membership))

/** Takes a person out of a team; it fails where they are not in it. */
export function removeMember(teamId: string, userId: string): Statement[] {
  const membership = and(eq(memberships.teamId, teamId), eq(memberships.userId, userId))
  return [guard(hasRow(memberships, membership)), statement(remove(memberships).where(membership))]
}
