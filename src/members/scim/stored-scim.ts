/**
 * The queries of SCIM's people and groups. Each takes the issuer of the token: what belongs to another one is not there.
 */
import { and, count, eq, type SQL, sql } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, isOneOf, query, remove, statement, subquery, update } from '../../store/query.ts'
import { memberships, programCodes, teams, userIdentities, users } from '../../store/schema/ledger/people.ts'
import { scimGroups, scimUsers } from '../../store/schema/ledger/scim.ts'
import type { Statement } from '../../store/statement.ts'
import type { Link, StoredGroup, StoredUser } from './scim-documents.ts'
import { ScimError } from './scim-error.ts'
import type { Comparison } from './scim-filter.ts'

export interface Page {
  filter: readonly Comparison[]
  /** Of the first record, from 0. */
  offset: number
  limit: number
}

const userColumns = {
  userId: scimUsers.userId,
  userName: scimUsers.userName,
  externalId: scimUsers.externalId,
  attributes: scimUsers.attributes,
  status: users.status,
  createdAt: scimUsers.createdAt,
  updatedAt: scimUsers.updatedAt,
}

export const nameKey = (userName: string): string => userName.toLowerCase()

const alike = (column: AnySQLiteColumn, value: string): SQL => sql`lower(${column}) = lower(${value})`

function userCondition({ attribute, value }: Comparison): SQL {
  const text = String(value)
  switch (attribute) {
    case 'username':
      return eq(scimUsers.userNameKey, nameKey(text))
    case 'externalid':
      return eq(scimUsers.externalId, text)
    case 'id':
      return eq(scimUsers.userId, text)
    case 'displayname':
      return alike(users.name, text)
    case 'active':
      return eq(users.status, text.toLowerCase() === 'true' ? 'active' : 'disabled')
    case 'emails':
    case 'emails.value':
      return alike(users.email, text)
    default:
      throw new ScimError(
        400,
        'invalidFilter',
        'People are found by userName, externalId, active, displayName, emails.value and id',
      )
  }
}

export async function listScimUsers(ledger: Database, issuer: string, page: Page) {
  const where = and(eq(scimUsers.issuer, issuer), ...page.filter.map(userCondition))
  const found = () => query(ledger).select(userColumns).from(scimUsers).innerJoin(users, eq(users.id, scimUsers.userId))
  const rows =
    page.limit === 0 ? [] : await found().where(where).orderBy(scimUsers.userId).limit(page.limit).offset(page.offset)
  const total = await query(ledger)
    .select({ total: count() })
    .from(scimUsers)
    .innerJoin(users, eq(users.id, scimUsers.userId))
    .where(where)
    .get()
  return { rows, total: total?.total ?? 0 }
}

export async function findScimUser(
  ledger: Database,
  issuer: string,
  comparison: Comparison,
): Promise<StoredUser | null> {
  const { rows } = await listScimUsers(ledger, issuer, { filter: [comparison], offset: 0, limit: 1 })
  return rows[0] ?? null
}

export const isScimUser = async (ledger: Database, userId: string): Promise<boolean> =>
  (await query(ledger).$count(scimUsers, eq(scimUsers.userId, userId))) > 0

/** The account whose last sign-in at this issuer named this external id. */
export const signedInAs = async (ledger: Database, issuer: string, externalId: string): Promise<string | null> =>
  (
    await query(ledger)
      .select({ userId: userIdentities.userId })
      .from(userIdentities)
      .where(and(eq(userIdentities.issuer, issuer), eq(userIdentities.externalId, externalId)))
      .get()
  )?.userId ?? null

/** The groups of each of these people. */
export async function groupsOfUsers(ledger: Database, issuer: string, userIds: readonly string[]) {
  const rows = await query(ledger)
    .select({ userId: memberships.userId, id: scimGroups.teamId, display: teams.name })
    .from(scimGroups)
    .innerJoin(teams, eq(teams.id, scimGroups.teamId))
    .innerJoin(memberships, eq(memberships.teamId, scimGroups.teamId))
    .where(and(eq(scimGroups.issuer, issuer), isOneOf(memberships.userId, userIds)))
    .orderBy(scimGroups.teamId)
  const byUser = Map.groupBy(rows, (row) => row.userId)
  return (userId: string): Link[] => byUser.get(userId) ?? []
}

export const addScimUser = (row: typeof scimUsers.$inferInsert): Statement => statement(insert(scimUsers).values(row))

export const changeScimUser = (userId: string, changes: Partial<typeof scimUsers.$inferInsert>): Statement =>
  statement(update(scimUsers).set(changes).where(eq(scimUsers.userId, userId)))

/** Takes away what binds an account to the issuer: what SCIM keeps of it, and the identities by which it signs in. */
export function releaseUser(issuer: string, userId: string): Statement[] {
  const own = and(eq(userIdentities.issuer, issuer), eq(userIdentities.userId, userId))
  const identities = subquery.select({ id: userIdentities.id }).from(userIdentities).where(own)
  const groups = subquery.select({ id: scimGroups.teamId }).from(scimGroups).where(eq(scimGroups.issuer, issuer))
  return [
    statement(remove(scimUsers).where(eq(scimUsers.userId, userId))),
    statement(remove(programCodes).where(sql`${programCodes.identityId} in ${identities}`)),
    statement(remove(userIdentities).where(own)),
    statement(remove(memberships).where(sql`${eq(memberships.userId, userId)} and ${memberships.teamId} in ${groups}`)),
  ]
}

function groupCondition({ attribute, value }: Comparison): SQL {
  const text = String(value)
  switch (attribute) {
    case 'displayname':
      return alike(teams.name, text)
    case 'externalid':
      return eq(scimGroups.externalId, text)
    case 'id':
      return eq(scimGroups.teamId, text)
    case 'members':
    case 'members.value':
      return hasRow(memberships, and(eq(memberships.teamId, scimGroups.teamId), eq(memberships.userId, text)))
    default:
      throw new ScimError(400, 'invalidFilter', 'Groups are found by displayName, externalId, members.value and id')
  }
}

const groupColumns = {
  teamId: scimGroups.teamId,
  displayName: teams.name,
  externalId: scimGroups.externalId,
  createdAt: scimGroups.createdAt,
  updatedAt: scimGroups.updatedAt,
  version: scimGroups.version,
}

export async function listScimGroups(ledger: Database, issuer: string, page: Page) {
  const where = and(eq(scimGroups.issuer, issuer), ...page.filter.map(groupCondition))
  const found = () =>
    query(ledger).select(groupColumns).from(scimGroups).innerJoin(teams, eq(teams.id, scimGroups.teamId))
  const rows =
    page.limit === 0 ? [] : await found().where(where).orderBy(scimGroups.teamId).limit(page.limit).offset(page.offset)
  const total = await query(ledger)
    .select({ total: count() })
    .from(scimGroups)
    .innerJoin(teams, eq(teams.id, scimGroups.teamId))
    .where(where)
    .get()
  return { rows, total: total?.total ?? 0 }
}

export async function findScimGroup(
  ledger: Database,
  issuer: string,
  comparison: Comparison,
): Promise<StoredGroup | null> {
  const { rows } = await listScimGroups(ledger, issuer, { filter: [comparison], offset: 0, limit: 1 })
  return rows[0] ?? null
}

export const hasTeamOfName = async (ledger: Database, name: string): Promise<boolean> =>
  (await query(ledger).$count(teams, eq(teams.name, name))) > 0

/** The members of these groups who are of the issuer. */
export async function membersOfGroups(ledger: Database, issuer: string, teamIds: readonly string[]) {
  const rows = await query(ledger)
    .select({ teamId: memberships.teamId, id: scimUsers.userId, display: users.name })
    .from(memberships)
    .innerJoin(scimUsers, eq(scimUsers.userId, memberships.userId))
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(scimUsers.issuer, issuer), isOneOf(memberships.teamId, teamIds)))
    .orderBy(scimUsers.userId)
  const byTeam = Map.groupBy(rows, (row) => row.teamId)
  return (teamId: string): Link[] => byTeam.get(teamId) ?? []
}

/** Which of these ids are people of the issuer. */
export const scimUsersAmong = async (
  ledger: Database,
  issuer: string,
  ids: readonly string[],
): Promise<Set<string>> => {
  const rows = await query(ledger)
    .select({ id: scimUsers.userId })
    .from(scimUsers)
    .where(and(eq(scimUsers.issuer, issuer), isOneOf(scimUsers.userId, ids)))
  return new Set(rows.map(({ id }) => id))
}

export const addScimGroup = (row: typeof scimGroups.$inferInsert): Statement =>
  statement(insert(scimGroups).values(row))

/** Changes a group that is still as it was read. */
export const changeScimGroup = (
  { teamId, version }: StoredGroup,
  changes: Partial<typeof scimGroups.$inferInsert>,
): Statement[] => [
  guard(hasRow(scimGroups, and(eq(scimGroups.teamId, teamId), eq(scimGroups.version, version)))),
  statement(
    update(scimGroups)
      .set({ ...changes, version: sql`${scimGroups.version} + 1` })
      .where(eq(scimGroups.teamId, teamId)),
  ),
]

/** Puts people in a team, unless they are in it, and takes others out, whether or not they are in it. */
export const changeMembers = (
  teamId: string,
  { joined, left, now }: { joined: readonly string[]; left: readonly string[]; now: number },
): Statement[] => [
  ...joined.map((userId) =>
    statement(insert(memberships).values({ teamId, userId, createdAt: now }).onConflictDoNothing()),
  ),
  statement(remove(memberships).where(and(eq(memberships.teamId, teamId), isOneOf(memberships.userId, left)))),
]

export const forgetScimGroup = (teamId: string): Statement =>
  statement(remove(scimGroups).where(eq(scimGroups.teamId, teamId)))
