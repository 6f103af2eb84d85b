/**
 * Issues tokens for a code, a device code or a refresh token (RFC 6749 sections 4.1.3, 4.1.4, 6; RFC 8628 section 3.4),
 * in this order:
 *
 *  1. the tables of `token-request.ts`; a replay ends the family
 *  2. ledger   the code or refresh token is used up and the next refresh token made, in one transaction: of two that
 *              present it at once one succeeds, and the other is a replay
 *  3. state    the access token, with its event
 *  4. the grant and the person are read again: what was revoked meanwhile ends before anybody has the secret
 *
 * If 3 or 4 fails, the use is undone, so that an outage costs nobody an approval. A process that dies after 2 has given
 * nothing: the next use of the code or refresh token counts as a replay, and the person is asked again. Nothing is
 * issued twice.
 */
import { brokenConstraint } from '../../events/log/append.ts'
import { makeSecret } from '../../identity/secret.ts'
import type { Statement } from '../../store/statement.ts'
import { type Check, firstRefusal, type Refusal, refuse } from '../authorize/check.ts'
import { type Parameters, single } from '../authorize/parameters.ts'
import { knownResources } from '../authorize/resource.ts'
import { deviceGrant, grantTypes } from '../clients/client-resource.ts'
import { findClient } from '../clients/stored-client.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { notedPoll, type PollFacts, pollChecks } from '../device/device-poll.ts'
import { followPerson, markPerson } from '../follow-person.ts'
import { clientPrincipal, oauthEvent } from '../oauth-event.ts'
import { personStatusOf } from '../person-status.ts'
import { activeScopes, writeScope } from '../scope.ts'
import { insertAccessToken } from './access-token.ts'
import { endGrant } from './end-grant.ts'
import {
  findRefreshToken,
  type Grant,
  grantOfCode,
  isRevoked,
  rotateRefreshToken,
  type Use,
  unuseCode,
  unuseRefreshToken,
  useCode,
} from './grant.ts'
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
  return await exchanges[typeOf(parameters)](dependencies, facts, requestId)
}

type GrantType = (typeof grantTypes)[number]

const exchanges: Readonly<Record<GrantType, typeof redeem>> = {
  authorization_code: redeem,
  [deviceGrant]: redeemDevice,
  refresh_token: refresh,
}

/** The checks have found that it is one of these. */
const typeOf = (parameters: Parameters): GrantType =>
  grantTypes.find((type) => type === single(parameters, 'grant_type')) ?? 'authorization_code'

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
    secret: code,
    use: useCode,
    unuse: unuseCode,
    again: () => redeem(dependencies, request, requestId),
  })
}

async function redeemDevice(
  dependencies: OAuthDependencies,
  request: RequestFacts,
  requestId: string,
): Promise<TokenAnswer | Refusal> {
  const { ledger, clock } = dependencies
  const secret = single(request.parameters, 'device_code') ?? ''
  const polled = await notedPoll(ledger, secret, clock.now())
  const grant = polled.device?.decision === 'approved' ? await grantOfCode(ledger, secret) : null
  const facts: PollFacts = { ...(await grantFacts(dependencies, request, grant)), ...polled }
  const given: Presented<PollFacts> = { facts, checks: pollChecks, cause: 'code_replay', requestId }
  return await give(dependencies, given, {
    type: 'oauth.token_issued',
    scope: grant?.scope ?? [],
    secret,
    use: useCode,
    unuse: unuseCode,
    again: () => redeemDevice(dependencies, request, requestId),
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
    refresh: found?.refresh ?? null,
  }
  const given: Presented<RefreshFacts> = { facts, checks: refreshChecks, cause: 'refresh_replay', requestId }
  return await give(dependencies, given, {
    type: 'oauth.token_refreshed',
    scope: scopeOfRefresh(facts) ?? [],
    secret,
    use: rotateRefreshToken,
    unuse: unuseRefreshToken,
    again: () => refresh(dependencies, request, requestId),
  })
}

async function grantFacts(
  { ledger, clock, settings, baseUrl, gatewayUrl }: OAuthDependencies,
  request: RequestFacts,
  grant: Grant | null,
): Promise<GrantFacts> {
  const resources = knownResources({ baseUrl: baseUrl(), gatewayUrl: gatewayUrl() })
  const userActive = grant !== null && (await personStatusOf(ledger, grant.userId)).active
  const active = activeScopes(settings.oauth_scopes)
  return { ...request, now: clock.now(), resources, grant, userActive, active }
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
  /** The presented code or refresh token, which works once. */
  secret: string
  use(use: Use): Statement[]
  unuse(use: Use): Statement[]
  /** Checks the same request again, which shows that another use was first. */
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
  if (refusal?.replay === true && grant?.revokedAt === null) await endReplayed(dependencies, grant, cause, requestId)
  if (refusal !== null || grant === null) return refusal ?? refuse('invalid_grant', 'There is no such approval')
  const now = clock.now()
  const idle = now + settings.oauth_refresh_idle_seconds * 1000
  const next = { secret: makeSecret('oauthRefresh', randomBytes), expiresAt: Math.min(idle, grant.expiresAt) }
  const use: Use = { secret: gift.secret, grantId: grant.id, now, next }
  try {
    await ledger.write(gift.use(use))
  } catch (error) {
    if (brokenConstraint(error) !== 'check') throw error
    return await gift.again()
  }
  const issue: Issue = { type: gift.type, scope: gift.scope, resources: resourcesOfToken(facts), requestId }
  const access = await issueAccessToken(dependencies, grant, issue).catch(async (error: unknown) => {
    // If this fails too, the next use counts as a replay.
    await ledger.write(gift.unuse(use)).catch(() => undefined)
    throw error
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

/** Ends the family and waits until gateways know: nothing of it works after the answer. */
async function endReplayed(
  dependencies: OAuthDependencies,
  grant: Grant,
  cause: 'code_replay' | 'refresh_replay',
  requestId: string,
): Promise<void> {
  const principal = clientPrincipal(grant.clientId)
  const ending = { type: 'oauth.replay_detected', cause, principal, requestId } as const
  await dependencies.fleet.propagation(await endGrant(dependencies, grant, ending))
}

interface Issue {
  type: Gift['type']
  scope: readonly string[]
  resources: readonly string[]
  requestId: string
}

/** The secret of a new access token; null if the approval ended meanwhile, and the token with it. */
async function issueAccessToken(
  dependencies: OAuthDependencies,
  grant: Grant,
  { type, scope, resources, requestId }: Issue,
): Promise<string | null> {
  const { ledger, clock, newId, randomBytes, recorder, settings } = dependencies
  const [id, secret, now] = [newId(), makeSecret('oauthAccess', randomBytes), clock.now()]
  const personStatus = await personStatusOf(ledger, grant.userId)
  const token = { id, secret, scope, resources, expiresAt: now + settings.oauth_access_seconds * 1000 }
  const principal = clientPrincipal(grant.clientId)
  const event = await oauthEvent(dependencies, {
    type,
    principal,
    requestId,
    clientId: grant.clientId,
    userId: grant.userId,
    tokenId: id,
    teamId: personStatus.teamIds[0] ?? null,
    details: { grant_id: grant.id, scope: writeScope(scope), resources },
  })
  await recorder.change({ event, state: insertAccessToken(token, grant, personStatus, now), ledger: [] })
  const after = await personStatusOf(ledger, grant.userId)
  if (!after.active || (await isRevoked(ledger, grant.id))) {
    await endGrant(dependencies, grant, { type: 'oauth.token_revoked', cause: 'interrupted', principal, requestId })
    return null
  }
  if (!Bun.deepEquals(after, personStatus)) {
    await ledger.write([markPerson(grant.userId, now)])
    await followPerson(dependencies, { principal, requestId }, grant.userId)
  }
  return secret
}
