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
import { users } from '../../store/schema/ledger/people.ts'

/** The roles a person can hold; `runtime` is for gateways only. */
export const userRoles = users.role.enumValues
export type UserRole = (typeof userRoles)[number]

export const userStatuses = users.status.enumValues
export type UserStatus = (typeof userStatuses)[number]

export type UserRow = typeof users.$inferSelect

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
 * Trims and writes all of it in lower case: by RFC 5321 section 2.4 the local part may tell cases apart, but no two people
 * are told apart so, and somebody else's address in capitals must not make a second account.
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

export const userRecord = (row: UserRow, teamIds: readonly string[]): User => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  status: row.status,
  has_password: row.passwordHash !== null,
  team_ids: [...teamIds],
  created_at: timestamp(row.createdAt),
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
