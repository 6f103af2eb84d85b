/**
 * The revocation endpoint (RFC 7009). A refresh token ends its grant with all access tokens, an access token only
 * itself. A foreign or ended token is answered like success (section 2.2). `token_type_hint` is not needed: a token
 * shows its own type.
 */

import { secretKind } from '../../identity/secret.ts'
import type { Propagation } from '../../store/propagation.ts'
import { type Check, firstRefusal, type Refusal, refuse } from '../authorize/check.ts'
import { isRepeated, type Parameters, single } from '../authorize/parameters.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { clientPrincipal, oauthEvent } from '../oauth-event.ts'
import { findAccessToken, revokeAccessTokens } from './access-token.ts'
import { endGrant } from './end-grant.ts'
import { findRefreshToken } from './grant.ts'
import { clientOf } from './issue-tokens.ts'
import { knownClient, type RequestFacts, required } from './token-request.ts'

export const revocationChecks: readonly Check<RequestFacts>[] = [
  {
    name: 'no parameter twice',
    source: 'RFC 6749 §3.2',
    check: ({ parameters }) =>
      isRepeated(parameters, 'token') || isRepeated(parameters, 'client_id')
        ? refuse('invalid_request', 'token and client_id must be given once')
        : null,
  },
  required('client_id', 'RFC 7009 §2.1, RFC 6749 §3.2.1'),
  knownClient('RFC 7009 §2.1'),
  required('token', 'RFC 7009 §2.1'),
]

const foreign = refuse('invalid_grant', 'The token was given to another application')

/** The result: the propagation to gateways, if there was something to revoke. */
export type Revoked = { propagation?: Propagation }

export async function revoke(
  dependencies: OAuthDependencies,
  parameters: Parameters,
  requestId: string,
): Promise<Revoked | Refusal> {
  const client = await clientOf(dependencies, parameters)
  const refusal = firstRefusal(revocationChecks, { parameters, client })
  if (refusal !== null) return refusal
  const [token, clientId] = [single(parameters, 'token') ?? '', client?.id ?? '']
  const kind = secretKind(token)
  if (kind === 'oauthRefresh') return await revokeRefresh(dependencies, token, clientId, requestId)
  if (kind === 'oauthAccess') return await revokeAccess(dependencies, token, clientId, requestId)
  return {}
}

async function revokeRefresh(
  dependencies: OAuthDependencies,
  token: string,
  clientId: string,
  requestId: string,
): Promise<Revoked | Refusal> {
  const found = await findRefreshToken(dependencies.ledger, token)
  if (found === null) return {}
  if (found.grant.clientId !== clientId) return foreign
  if (found.grant.revokedAt !== null) return {}
  const principal = clientPrincipal(clientId)
  const ending = { type: 'oauth.token_revoked', cause: 'client', principal, requestId } as const
  const version = await endGrant(dependencies, found.grant, ending)
  return { propagation: await dependencies.fleet.propagation(version) }
}

async function revokeAccess(
  dependencies: OAuthDependencies,
  token: string,
  clientId: string,
  requestId: string,
): Promise<Revoked | Refusal> {
  const { state, clock, recorder, fleet } = dependencies
  const found = await findAccessToken(state, token)
  if (found === null) return {}
  if (found.clientId !== clientId) return foreign
  if (found.revokedAt !== null || found.expiresAt <= clock.now()) return {}
  const event = await oauthEvent(dependencies, {
    type: 'oauth.token_revoked',
    principal: clientPrincipal(clientId),
    requestId,
    clientId,
    userId: found.userId,
    tokenId: found.id,
    teamId: found.teamIds[0] ?? null,
    details: { grant_id: found.grantId, cause: 'client' },
  })
  const { head } = await recorder.change({
    event,
    state: [revokeAccessTokens({ by: 'id', id: found.id }, clock.now())],
    ledger: [],
    revoked: [found.hash],
  })
  return { propagation: await fleet.propagation(head.version) }
}
