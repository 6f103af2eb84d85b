/** What a person is and may do now, as far as access tokens depend on it. */

import { type Permission, permissionsOf } from '../identity/permissions.ts'
import { findUser, teamsOfUsers } from '../members/people/stored-user.ts'
import type { Database } from '../store/open.ts'

export interface PersonStatus {
  active: boolean
  permissions: ReadonlySet<Permission>
  /** In the order they were joined; the first one's readers see the person's events. */
  teamIds: readonly string[]
}

export async function personStatusOf(ledger: Database, userId: string): Promise<PersonStatus> {
  const user = await findUser(ledger, userId)
  const teams = await teamsOfUsers(ledger, [userId])
  return {
    active: user?.status === 'active',
    permissions: permissionsOf(user === null ? [] : [user.role]),
    teamIds: teams.get(userId) ?? [],
  }
}

/** The part of a scope that the person holds. */
export const permissionsWithin = (scope: readonly string[], { active, permissions }: PersonStatus): Permission[] =>
  active ? [...permissions].filter((permission) => scope.includes(permission)) : []
