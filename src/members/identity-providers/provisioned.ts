/** What a provider sent by SCIM, as sign-in reads it (scim/). */
import { and, eq } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { memberships, teams } from '../../store/schema/ledger/people.ts'
import { scimGroups, scimUsers } from '../../store/schema/ledger/scim.ts'
import type { KnownProvider } from './stored-identity-provider.ts'

/** The person whom the provider made under this external id, by the id of their account. */
export async function provisionedPerson(
  ledger: Database,
  { issuer }: Pick<KnownProvider, 'issuer'>,
  externalId: string | null,
): Promise<string | null> {
  if (externalId === null) return null
  const found = await query(ledger)
    .select({ userId: scimUsers.userId })
    .from(scimUsers)
    .where(and(eq(scimUsers.issuer, issuer), eq(scimUsers.externalId, externalId)))
    .get()
  return found?.userId ?? null
}

/** The groups of a person by name and by external id, where SCIM decides about groups; null where the claim does. */
export async function provisionedGroups(
  ledger: Database,
  { issuer, config }: Pick<KnownProvider, 'issuer' | 'config'>,
  userId: string | null,
): Promise<readonly string[] | null> {
  if (config.groups_from !== 'scim') return null
  if (userId === null) return []
  const groups = await query(ledger)
    .select({ name: teams.name, externalId: scimGroups.externalId })
    .from(scimGroups)
    .innerJoin(teams, eq(teams.id, scimGroups.teamId))
    .innerJoin(memberships, eq(memberships.teamId, scimGroups.teamId))
    .where(and(eq(scimGroups.issuer, issuer), eq(memberships.userId, userId)))
  return groups.flatMap(({ name, externalId }) => (externalId === null ? [name] : [name, externalId]))
}
