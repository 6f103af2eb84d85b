/** The queries of identity providers and of the identities they vouch for. */
import { and, eq, gt, inArray, isNotNull, sql } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { forgetSecret, keepSecret, openSecret } from '../../store/keys/secrets.ts'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, subquery, update } from '../../store/query.ts'
import { identityProviders, programCodes, userIdentities, userSessions } from '../../store/schema/ledger/people.ts'
import { scimTokens } from '../../store/schema/ledger/scim.ts'
import type { Statement } from '../../store/statement.ts'
import { configSchema, type ProviderConfig } from './identity-provider-resource.ts'

export type ProviderRow = typeof identityProviders.$inferSelect
export type IdentityRow = typeof userIdentities.$inferSelect

/** A provider with all that a sign-in needs of it, the secret among it. */
export interface KnownProvider extends Pick<ProviderRow, 'id' | 'name' | 'issuer' | 'clientId' | 'version'> {
  clientSecret: string | null
  config: ProviderConfig
}

interface Sealed {
  ledger: Database
  masterKey: MasterKey
}

const secretName = (id: string): string => `identity-provider:${id}`

export const configOf = ({ config }: Pick<ProviderRow, 'config'>): ProviderConfig =>
  configSchema.parse(JSON.parse(config))

export const findProvider = async (ledger: Database, id: string): Promise<ProviderRow | null> =>
  (await query(ledger).select().from(identityProviders).where(eq(identityProviders.id, id)).get()) ?? null

export const listProviders = (ledger: Database, start: string, count: number): Promise<ProviderRow[]> =>
  query(ledger)
    .select()
    .from(identityProviders)
    .where(gt(identityProviders.id, start))
    .orderBy(identityProviders.id)
    .limit(count)

/** The providers by which people may sign in, in the order of their names. */
export const enabledProviders = (ledger: Database) =>
  query(ledger)
    .select({ id: identityProviders.id, name: identityProviders.name })
    .from(identityProviders)
    .where(eq(identityProviders.enabled, 1))
    .orderBy(identityProviders.name)

/** An enabled provider with its secret. Throws `not_found`. */
export async function requireEnabled(sealed: Sealed, by: { id: string } | { issuer: string }): Promise<KnownProvider> {
  const which = 'id' in by ? eq(identityProviders.id, by.id) : eq(identityProviders.issuer, by.issuer)
  const row = await query(sealed.ledger)
    .select()
    .from(identityProviders)
    .where(and(which, eq(identityProviders.enabled, 1)))
    .get()
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such identity provider' })
  const { id, name, issuer, clientId, version } = row
  return { id, name, issuer, clientId, version, clientSecret: await clientSecretOf(sealed, id), config: configOf(row) }
}

/** The enabled provider of an identity, if signing out here is signing out there; null otherwise. */
export async function signOutProvider(sealed: Sealed, identityId: string): Promise<KnownProvider | null> {
  const row = await query(sealed.ledger)
    .select({ id: identityProviders.id, config: identityProviders.config })
    .from(userIdentities)
    .innerJoin(identityProviders, eq(identityProviders.issuer, userIdentities.issuer))
    .where(and(eq(userIdentities.id, identityId), eq(identityProviders.enabled, 1)))
    .get()
  if (row === undefined || !configOf(row).sign_out_at_provider) return null
  return await requireEnabled(sealed, { id: row.id })
}

export const clientSecretOf = ({ ledger, masterKey }: Sealed, id: string): Promise<string | null> =>
  openSecret(ledger, masterKey, secretName(id))

export const addProvider = (row: typeof identityProviders.$inferInsert): Statement =>
  statement(insert(identityProviders).values(row))

/** Replaces the client secret; null takes it away. */
export const setClientSecret = (masterKey: MasterKey, id: string, secret: string | null, now: number): Statement[] => [
  forgetSecret(secretName(id)),
  ...(secret === null ? [] : [keepSecret(masterKey, secretName(id), secret, now)]),
]

const isUnchanged = ({ id, version }: ProviderRow): Statement =>
  guard(hasRow(identityProviders, and(eq(identityProviders.id, id), eq(identityProviders.version, version))))

/** Changes a provider that is still as it was read, and has its people checked anew. */
export const changeProvider = (before: ProviderRow, after: ProviderRow, now: number): Statement[] => [
  isUnchanged(before),
  statement(
    update(identityProviders)
      .set({
        name: after.name,
        clientId: after.clientId,
        config: after.config,
        enabled: after.enabled,
        version: sql`${identityProviders.version} + 1`,
      })
      .where(eq(identityProviders.id, before.id)),
  ),
  ...(after.enabled === 1
    ? [
        statement(
          update(userIdentities)
            .set({ checkAt: now })
            .where(and(eq(userIdentities.issuer, before.issuer), isNotNull(userIdentities.checkAt))),
        ),
      ]
    : endSessionsBy(before.issuer)),
]

/** Deletes a provider that is still as it was read. People keep their identities, for a provider that is made again. */
export const deleteProvider = (before: ProviderRow): Statement[] => [
  isUnchanged(before),
  ...endSessionsBy(before.issuer),
  statement(remove(identityProviders).where(eq(identityProviders.id, before.id))),
  statement(remove(scimTokens).where(eq(scimTokens.identityProviderId, before.id))),
  forgetSecret(secretName(before.id)),
]

const noLongerVouched = { vouchedUntil: 0, checkAt: null, refreshToken: null } as const

function endSessionsBy(issuer: string): Statement[] {
  const own = subquery.select({ id: userIdentities.id }).from(userIdentities).where(eq(userIdentities.issuer, issuer))
  return [
    statement(update(userIdentities).set(noLongerVouched).where(eq(userIdentities.issuer, issuer))),
    statement(remove(userSessions).where(inArray(userSessions.identityId, own))),
  ]
}

export const findIdentity = async (ledger: Database, issuer: string, subject: string): Promise<IdentityRow | null> =>
  (await query(ledger)
    .select()
    .from(userIdentities)
    .where(and(eq(userIdentities.issuer, issuer), eq(userIdentities.subject, subject)))
    .get()) ?? null

/** Takes all identities of a person away, with the sessions and codes that came of them. */
export function removeIdentities(userId: string): Statement[] {
  const own = subquery.select({ id: userIdentities.id }).from(userIdentities).where(eq(userIdentities.userId, userId))
  return [
    statement(remove(userSessions).where(inArray(userSessions.identityId, own))),
    statement(
      update(programCodes).set({ expiresAt: 0, identityId: null }).where(inArray(programCodes.identityId, own)),
    ),
    statement(remove(userIdentities).where(eq(userIdentities.userId, userId))),
  ]
}

export const sealRefreshToken = (masterKey: MasterKey, identityId: string, token: string): string =>
  masterKey.seal('refresh_token', identityId, token)

export const openRefreshToken = (masterKey: MasterKey, { id, refreshToken }: IdentityRow): string | null =>
  refreshToken === null ? null : masterKey.open('refresh_token', id, refreshToken)

export const addIdentity = (identity: IdentityRow): Statement => statement(insert(userIdentities).values(identity))

/** What a provider said of an identity. */
export const renewIdentity = (id: string, changes: Partial<IdentityRow>): Statement =>
  statement(update(userIdentities).set(changes).where(eq(userIdentities.id, id)))

/** The identity's provider no longer vouches for it. */
export const loseIdentity = (id: string, now: number): Statement =>
  renewIdentity(id, { ...noLongerVouched, lostAt: now })
