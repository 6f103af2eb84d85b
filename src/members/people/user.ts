/**
 * People: their record, how their e-mail address is written, and who may change whom (handbook/tokens.md,
 * handbook/people.md).
 */

import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { nameText, noSecret } from '../../identity/free-text.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import type { Principal } from '../../identity/principal.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

/** The roles a person can hold; `runtime` is for gateways only. */
export const userRoles = ['owner', 'admin', 'operator', 'auditor', 'member'] as const
export type UserRole = (typeof userRoles)[number]

export const userStatuses = ['active', 'disabled'] as const
export type UserStatus = (typeof userStatuses)[number]

export interface UserRow {
  id: string
  email: string
  name: string
  role: UserRole
  status: UserStatus
  password_hash: string | null
  created_at: number
  version: number
}

export const userSchema = z.object({
  id: z.uuid(),
  email: z.string(),
  name: z.string(),
  role: z.enum(userRoles),
  status: z.enum(userStatuses),
  has_password: z.boolean().describe('Whether the person can sign in by password'),
  team_ids: z.array(z.string()),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type User = z.infer<typeof userSchema>

/** Text that people read: trimmed, no control characters. */
export const displayName = nameText(200)

/**
 * Trims and lowers the case of all of it. By RFC 5321 section 2.4 the local part may be case-sensitive, but no real
 * people differ by it, and somebody else's address in capitals must not make a second account.
 */
export function normaliseEmail(text: string): string {
  return text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** An e-mail address as a body may hold it; the parsed value is normalised. At most 254 characters (RFC 5321 4.5.3.1). */
export const emailSchema = z
  .string()
  .max(254)
  .transform(normaliseEmail)
  .pipe(
    z
      .string()
      .regex(/^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,189}$/u, 'Write an e-mail address: name@example.com')
      .refine(...noSecret),
  )

const columns = 'id, email, name, role, status, password_hash, created_at, version'

export async function findUser(ledger: Database, id: string): Promise<UserRow | null> {
  const [row] = await ledger.read<UserRow>(`select ${columns} from users where id = ?`, [id])
  return row ?? null
}

export async function findUserByEmail(ledger: Database, email: string): Promise<UserRow | null> {
  const [row] = await ledger.read<UserRow>(`select ${columns} from users where lower(email) = ?`, [
    normaliseEmail(email),
  ])
  return row ?? null
}

/** The teams of each of these people. */
export async function teamsOfUsers(ledger: Database, userIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await ledger.read<{ user_id: string; team_id: string }>(
    `select user_id, team_id from memberships where user_id in (select value from json_each(?))
     order by created_at, team_id`,
    [JSON.stringify(userIds)],
  )
  const teams = new Map<string, string[]>(userIds.map((id) => [id, []]))
  for (const { user_id, team_id } of rows) teams.get(user_id)?.push(team_id)
  return teams
}

export const userRecord = (row: UserRow, teamIds: readonly string[]): User => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  status: row.status,
  has_password: row.password_hash !== null,
  team_ids: [...teamIds],
  created_at: timestamp(row.created_at),
  version: row.version,
})

/**
 * Refuses (`permission_denied`) what this caller may not do to a person of role `from` that becomes one of role `to`
 * (null: is new): only an owner changes owners, and nobody grants more than they hold.
 */
export function assertMayChange(principal: Principal, from: UserRole | null, to: UserRole): void {
  const isOwner = principal.roles.includes('owner')
  if (!isOwner && (from === 'owner' || to === 'owner')) {
    throw new Failure('permission_denied', { message: 'Only an owner can make or change an owner', param: 'role' })
  }
  if (from === to) return
  const beyond = [...permissionsOf([to])].find((permission) => !principal.permissions.has(permission))
  if (beyond !== undefined) {
    throw new Failure('permission_denied', {
      message: `The role ${to} holds ${beyond}, which you do not hold yourself`,
      param: 'role',
    })
  }
}

/** A statement that fails its transaction where no other active owner than this person is left. */
export const otherOwnerGuard = (userId: string): Statement => ({
  sql: `insert into guards (holds) select 0 where not exists
    (select 1 from users where role = 'owner' and status = 'active' and id <> ?)`,
  args: [userId],
})

/** Whether a change takes an active owner away. */
export const losesOwner = (
  before: Pick<UserRow, 'role' | 'status'>,
  after: Pick<UserRow, 'role' | 'status'>,
): boolean =>
  before.role === 'owner' && before.status === 'active' && (after.role !== 'owner' || after.status !== 'active')
