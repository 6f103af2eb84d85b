/**
 * Gives tokens for a code or a refresh token (RFC 6749 sections 4.1.3, 4.1.4, 6). In this order:
 *
 *   1. the tables of `token-request.ts`; a replay ends the family
 *   2. ledger   the code or refresh token is used up and the next refresh token made, in one transaction: of two that
 *               present it at once one gets through, the other is its replay
 *   3. state    the access token, with its event
 *   4. the grant and the person are looked at again: what was revoked meanwhile ends before anybody has the secret
 *
 * A process that dies after 2 has given nothing: the code is gone, or the next use of the refresh token counts as a
 * replay, and the person is asked again. Nothing is issued twice.
 */
import { brokenConstraint } from '../events/append.ts'
import type { Statement } from '../store/open.ts'
import { makeSecret } from '../tokens/secret.ts'
import { insertAccessToken } from './access-token.ts'
import { type Check, firstRefusal, type Refusal, refuse } from './check.ts'
import { findClient } from './client.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { endGrant } from './end-grant.ts'
import { followPerson, markPerson } from './follow-person.ts'
import { findRefreshToken, type Grant, grantOfCode, isRevoked, rotateRefreshToken, type Use, useCode } from './grant.ts'
import { clientPrincipal, oauthEvent } from './oauth-event.ts'
import { type Parameters, single } from './parameters.ts'
import { knownResources } from './resource.ts'
import { activeScopes, writeScope } from './scope.ts'
import { standingOf } from './standing.ts'
import {
  codeChecks,
  type GrantFacts,
  type RefreshFacts,
  type RequestFacts,
  refreshChecks,
  requestChecks,
  resourcesOfToken,
  scopeOfRefresh,
} from './token-request.ts'

/** RFC 6749 section 5.1. */
export interface TokenAnswer {
  access_token: string
  token_type: 'Bearer'
  expires_in: number
  refresh_token: string
  scope: string
}

export async function issueTokens(
  dependencies: OAuthDependencies,
  parameters: Parameters,
  requestId: string,
): Promise<TokenAnswer | Refusal> {
  const facts: RequestFacts = { parameters, client: await clientOf(dependencies, parameters) }
  const refusal = firstRefusal(requestChecks, facts)
  if (refusal !== null) return refusal
  const exchange = single(parameters, 'grant_type') === 'refresh_token' ? refresh : redeem
  return await exchange(dependencies, facts, requestId)
}

export async function clientOf({ ledger }: OAuthDependencies, parameters: Parameters) {
  const id = single(parameters, 'client_id')
  return id === null ? null : await findClient(ledger, id)
}

async function redeem(
  dependencies: OAuthDependencies,
  request: RequestFacts,
  requestId: string,
): Promise<TokenAnswer | Refusal> {
  const code = single(request.parameters, 'code') ?? ''
  const grant = await grantOfCode(dependencies.ledger, code)
  const facts = await grantFacts(dependencies, request, grant)
  const given: Presented<GrantFacts> = { facts, checks: codeChecks, cause: 'code_replay', requestId }
  return await give(dependencies, given, {
    type: 'oauth.token_issued',
    scope: grant?.scope ?? [],
    use: (use) => useCode({ ...use, secret: code }),
    again: () => redeem(dependencies, request, requestId),
  })
}

async function refresh(
  dependencies: OAuthDependencies,
  request: RequestFacts,
  requestId: string,
): Promise<TokenAnswer | Refusal> {
  const secret = single(request.parameters, 'refresh_token') ?? ''
  const found = await findRefreshToken(dependencies.ledger, secret)
  const facts: RefreshFacts = {
    ...(await grantFacts(dependencies, request, found?.grant ?? null)),
    active: activeScopes(dependencies.settings.oauth_scopes),
    refresh: found?.refresh ?? null,
  }
  const given: Presented<RefreshFacts> = { facts, checks: refreshChecks, cause: 'refresh_replay', requestId }
  return await give(dependencies, given, {
    type: 'oauth.token_refreshed',
    scope: scopeOfRefresh(facts) ?? [],
    use: (use) => rotateRefreshToken({ ...use, secret }),
    again: () => refresh(dependencies, request, requestId),
  })
}

async function grantFacts(
  { ledger, clock, baseUrl, gatewayUrl }: OAuthDependencies,
  request: RequestFacts,
  grant: Grant | null,
): Promise<GrantFacts> {
  const resources = knownResources({ baseUrl: baseUrl(), gatewayUrl: gatewayUrl() })
  const userActive = grant !== null && (await standingOf(ledger, grant.userId)).active
  return { ...request, now: clock.now(), resources, grant, userActive }
}

interface Presented<Facts extends GrantFacts> {
  facts: Facts
  checks: readonly Check<Facts>[]
  cause: 'code_replay' | 'refresh_replay'
  requestId: string
}

interface Gift {
  type: 'oauth.token_issued' | 'oauth.token_refreshed'
  scope: readonly string[]
  use(use: Omit<Use, 'secret'>): Statement[]
  /** Looks at the same request anew, which finds that somebody else was first. */
  again(): Promise<TokenAnswer | Refusal>
}

async function give<Facts extends GrantFacts>(
  dependencies: OAuthDependencies,
  { facts, checks, cause, requestId }: Presented<Facts>,
  gift: Gift,
): Promise<TokenAnswer | Refusal> {
  const { ledger, clock, randomBytes, settings } = dependencies
  const { grant } = facts
  const refusal = firstRefusal(checks, facts)
  if (refusal?.replay === true && grant !== null) await endReplayed(dependencies, grant, cause, requestId)
  if (refusal !== null || grant === null) return refusal ?? refuse('invalid_grant', 'There is no such approval')
  const now = clock.now()
  const idle = now + settings.oauth_refresh_idle_seconds * 1000
  const next = { secret: makeSecret('oauthRefresh', randomBytes), expiresAt: Math.min(idle, grant.expiresAt) }
  try {
    await ledger.write(gift.use({ grantId: grant.id, now, next }))
  } catch (error) {
    if (brokenConstraint(error) !== 'check') throw error
    return await gift.again()
  }
  const resources = resourcesOfToken(facts)
  const access = await issueAccessToken(dependencies, grant, {
    type: gift.type,
    scope: gift.scope,
    resources,
    requestId,
  })
  if (access === null) return refuse('invalid_grant', 'What the person approved has ended')
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: settings.oauth_access_seconds,
    refresh_token: next.secret,
    scope: writeScope(gift.scope),
  }
}

const endReplayed = (
  dependencies: OAuthDependencies,
  grant: Grant,
  cause: 'code_replay' | 'refresh_replay',
  requestId: string,
): Promise<number> =>
  endGrant(dependencies, grant, {
    type: 'oauth.replay_detected',
    cause,
    principal: clientPrincipal(grant.clientId),
    requestId,
  })

interface Issue {
  type: Gift['type']
  scope: readonly string[]
  resources: readonly string[]
  requestId: string
}

/** The secret of a new access token; null where the approval ended meanwhile, and then the token has ended too. */
async function issueAccessToken(
  dependencies: OAuthDependencies,
  grant: Grant,
  { type, scope, resources, requestId }: Issue,
): Promise<string | null> {
  const { ledger, clock, newId, randomBytes, recorder, settings } = dependencies
  const [id, secret, now] = [newId(), makeSecret('oauthAccess', randomBytes), clock.now()]
  const standing = await standingOf(ledger, grant.userId)
  const token = { id, secret, scope, resources, expiresAt: now + settings.oauth_access_seconds * 1000 }
  const principal = clientPrincipal(grant.clientId)
  const event = await oauthEvent(dependencies, {
    type,
    principal,
    requestId,
    clientId: grant.clientId,
    userId: grant.userId,
    tokenId: id,
    teamId: standing.teamIds[0] ?? null,
    details: { grant_id: grant.id, scope: writeScope(scope), resources },
  })
  await recorder.change({ event, state: insertAccessToken(token, grant, standing, now), ledger: [] })
  const after = await standingOf(ledger, grant.userId)
  if (!after.active || (await isRevoked(ledger, grant.id))) {
    await endGrant(dependencies, grant, { type: 'oauth.token_revoked', cause: 'interrupted', principal, requestId })
    return null
  }
  if (!Bun.deepEquals(after, standing)) {
    await ledger.write([markPerson(grant.userId, now)])
    await followPerson(dependencies, { principal, requestId }, grant.userId)
  }
  return secret
}
