/** Who calls SCIM: a token of its own kind, which is bound to one identity provider and good for nothing else. */
import { and, eq, isNull } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import { bearerSecret, hashSecret, secretKind } from '../../identity/secret.ts'
import { query, statement, update } from '../../store/query.ts'
import { identityProviders } from '../../store/schema/ledger/people.ts'
import { scimTokens } from '../../store/schema/ledger/scim.ts'
import type { Actor } from '../../tokens/creation/minting.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { type KnownProvider, requireEnabled } from '../identity-providers/stored-identity-provider.ts'
import { ScimError } from './scim-error.ts'

export interface ScimCall {
  dependencies: MemberDependencies
  provider: KnownProvider
  actor: Actor
  /** The address of this API, without a slash at its end. */
  base: string
}

/** `last_used_at` is written again after this time. */
const useMilliseconds = 60_000

/** Throws `ScimError`: 401 without a token in force, 403 where its provider is switched off. */
export async function scimCall(
  dependencies: MemberDependencies,
  request: Request,
  requestId: string,
): Promise<ScimCall> {
  const { ledger, clock } = dependencies
  const secret = bearerSecret(request.headers.get('authorization'))
  const token =
    secret === null || secretKind(secret) !== 'scim'
      ? undefined
      : await query(ledger)
          .select({ id: scimTokens.id, lastUsedAt: scimTokens.lastUsedAt, providerId: identityProviders.id })
          .from(scimTokens)
          .innerJoin(identityProviders, eq(identityProviders.id, scimTokens.identityProviderId))
          .where(and(eq(scimTokens.hash, hashSecret(secret)), isNull(scimTokens.revokedAt)))
          .get()
  if (token === undefined) throw new ScimError(401, null, 'Send a SCIM token in force: Authorization: Bearer gthm_…')
  const provider = await requireEnabled(dependencies, { id: token.providerId }).catch((error: unknown) => {
    if (!(error instanceof Failure) || error.code !== 'not_found') throw error
    throw new ScimError(403, null, 'The identity provider of this token is switched off')
  })
  const now = clock.now()
  if (now - (token.lastUsedAt ?? 0) >= useMilliseconds) {
    await ledger.write([statement(update(scimTokens).set({ lastUsedAt: now }).where(eq(scimTokens.id, token.id)))])
  }
  const principal = { ...anonymous, name: `scim-token:${token.id}` }
  return { dependencies, provider, actor: { principal, requestId }, base: `${dependencies.baseUrl()}/scim/v2` }
}
