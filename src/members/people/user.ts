/**
 * People: their rows, and who may change whom (handbook/tokens.md, handbook/people.md).
 */

import { Failure } from '../../failure.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import type { Principal } from '../../identity/principal.ts'
import { timestamp } from '../../lib/clock.ts'
import type { users } from '../../store/schema/ledger/people.ts'
import type { User, UserRole } from './user-resource.ts'

export type UserRow = typeof users.$inferSelect

export const userRecord = (row: UserRow, teamIds: readonly string[]): User => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  status: row.status,
  has_password: row.passwordHash !== null,
  has_second_factor: row.totpSince !== null,
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
