/** The queries of people. */
import { and, eq, gt, ne, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, isNamed, isOneOf, query, statement, update } from '../../store/query.ts'
import { memberships, users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'
import { endSessionsOf } from '../sessions/session.ts'
import type { UserRow } from './user.ts'
import { normaliseEmail, type UserRole, type UserStatus } from './user-resource.ts'

export const findUser = async (ledger: Database, id: string): Promise<UserRow | null> =>
  (await query(ledger).select().from(users).where(eq(users.id, id)).get()) ?? null

const hasEmail = (email: string): SQL => sql`lower(${users.email}) = ${normaliseEmail(email)}`

export const findUserByEmail = async (ledger: Database, email: string): Promise<UserRow | null> =>
  (await query(ledger).select().from(users).where(hasEmail(email)).get()) ?? null

/** A page of people in the order they were added, after the id `start`. */
export const listUsers = (
  ledger: Database,
  {
    name,
    role,
    status,
    visible,
    start,
    count,
  }: UserFilters & { visible: SQL | undefined; start: string; count: number },
): Promise<UserRow[]> =>
  query(ledger)
    .select()
    .from(users)
    .where(
      and(
        gt(users.id, start),
        role === undefined ? undefined : eq(users.role, role),
        status === undefined ? undefined : eq(users.status, status),
        isNamed(name, { id: users.id, names: [users.name, users.email] }),
        visible,
      ),
    )
    .orderBy(users.id)
    .limit(count)

interface UserFilters {
  /** In the name or the e-mail address. */
  name: string | undefined
  role: UserRole | undefined
  status: UserStatus | undefined
}

/** The teams of each of these people. */
export async function teamsOfUsers(ledger: Database, userIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await query(ledger)
    .select()
    .from(memberships)
    .where(isOneOf(memberships.userId, userIds))
    .orderBy(memberships.createdAt, memberships.teamId)
  const teams = new Map<string, string[]>(userIds.map((id) => [id, []]))
  for (const { userId, teamId } of rows) teams.get(userId)?.push(teamId)
  return teams
}

/** Adds a person. Addresses of before may hold capitals, which the column's own constraint tells apart. */
export const addUser = (user: typeof users.$inferInsert): Statement[] => [
  guard(sql`not ${hasRow(users, hasEmail(user.email))}`),
  statement(insert(users).values(user)),
]

/** Changes a person who is still as they were read. */
export function changeUser(before: UserRow, after: UserRow, newPassword: boolean): Statement[] {
  const { email, name, role, status, passwordHash } = after
  const version = sql`${users.version} + 1`
  return [
    guard(hasRow(users, and(eq(users.id, before.id), eq(users.version, before.version)))),
    ...(losesOwner(before, after) ? [guard(hasRow(users, otherActiveOwner(before.id)))] : []),
    ...(email === before.email
      ? []
      : [guard(sql`not ${hasRow(users, and(hasEmail(email), ne(users.id, before.id)))}`)]),
    statement(update(users).set({ email, name, role, status, passwordHash, version }).where(eq(users.id, before.id))),
    ...(newPassword || status === 'disabled' ? endSessionsOf(before.id) : []),
  ]
}

/** Sets what a setup link asks for beside the password. */
export const nameUser = (id: string, names: { email: string; name: string }): Statement =>
  statement(update(users).set(names).where(eq(users.id, id)))

/** Whether a change takes an active owner away. */
export const losesOwner = (
  before: Pick<UserRow, 'role' | 'status'>,
  after: Pick<UserRow, 'role' | 'status'>,
): boolean =>
  before.role === 'owner' && before.status === 'active' && (after.role !== 'owner' || after.status !== 'active')

const otherActiveOwner = (userId: string) =>
  and(eq(users.role, 'owner'), eq(users.status, 'active'), ne(users.id, userId))

export const hasOtherOwner = async (ledger: Database, userId: string): Promise<boolean> =>
  (await query(ledger).$count(users, otherActiveOwner(userId))) > 0
