/**
 * Dynamic client registration (RFC 7591), where the setting allows it: MCP has deprecated it, but some clients know no
 * other way. Anybody can call it, so an address registers a few applications an hour, all of them together are bounded,
 * and one that nobody approves within a day is removed.
 */
import { and, eq, gt, like, lt, not } from 'drizzle-orm'
import { jsonResponse } from '../../api/answer.ts'
import { parseJsonObject, readBytes, requireContentType } from '../../api/body.ts'
import { asFailure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import { recordChange } from '../../members/member-event.ts'
import { addressKey } from '../../members/people/throttle.ts'
import { hasRow, query, remove, statement } from '../../store/query.ts'
import { oauthClients, oauthGrants } from '../../store/schema/ledger/oauth.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { writeScope } from '../scope.ts'
import { addClient } from './stored-client.ts'
import {
  clientMetadata,
  registrationPrefix,
  unvettedGrants,
  unvettedScope,
  usableRedirects,
} from './unvetted-client.ts'

const bodyBytes = 16 * 1024
const hour = 3_600_000
const mostOfAddress = 10
const mostUnapproved = 1000
const unapprovedMilliseconds = 24 * hour

/** RFC 7591 section 3.2. */
export async function registerClient(
  dependencies: OAuthDependencies,
  request: Request,
  requestId: string,
): Promise<Response> {
  const metadata = await readMetadata(request)
  if (typeof metadata === 'string') return refusal(400, 'invalid_client_metadata', metadata)
  const { client_name: name = 'An application without a name', redirect_uris, scope } = metadata
  const redirectUris = usableRedirects(redirect_uris)
  if (redirectUris.length < redirect_uris.length) {
    const description =
      'A redirect URI is https, or http on a loopback host, written as browsers do, without a fragment'
    return refusal(400, 'invalid_redirect_uri', description)
  }
  const createdBy = `${registrationPrefix}${addressKey(dependencies.addressOf(request)).slice(-16)}`
  if (!(await hasRoom(dependencies, createdBy))) {
    return refusal(429, 'slow_down', 'Too many applications registered themselves: try again in an hour')
  }
  const [id, createdAt] = [dependencies.newId(), dependencies.clock.now()]
  const client = { id, name, redirectUris, scope: unvettedScope(scope), grantTypes: [...unvettedGrants] }
  const event = await oauthEvent(dependencies, {
    type: 'oauth.client_created',
    principal: anonymous,
    requestId,
    clientId: id,
    details: { client_name: name, redirect_uris: redirectUris, scope: writeScope(client.scope), registered: 'itself' },
  })
  await recordChange(dependencies.recorder, { event, ledger: [addClient({ ...client, createdAt, createdBy })] })
  const answer = {
    client_id: id,
    client_id_issued_at: Math.floor(createdAt / 1000),
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: client.grantTypes,
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: writeScope(client.scope),
  }
  return jsonResponse(201, JSON.stringify(answer), noStore)
}

const noStore = { 'cache-control': 'no-store', pragma: 'no-cache' }

const refusal = (status: number, error: string, error_description: string): Response =>
  jsonResponse(status, JSON.stringify({ error, error_description }), noStore)

/** In words what is wrong with it. */
async function readMetadata(request: Request) {
  try {
    requireContentType(request, 'application/json')
    const read = clientMetadata.safeParse(parseJsonObject(await readBytes(request, bodyBytes)))
    if (!read.success) {
      const [issue] = read.error.issues
      return `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}`
    }
    if (read.data.grant_types?.includes('authorization_code') === false) {
      return 'grant_types: an application that registers itself gets authorization codes'
    }
    return read.data
  } catch (error) {
    return asFailure(error).message
  }
}

async function hasRoom({ ledger, clock }: OAuthDependencies, createdBy: string): Promise<boolean> {
  const recent = and(eq(oauthClients.createdBy, createdBy), gt(oauthClients.createdAt, clock.now() - hour))
  if ((await query(ledger).$count(oauthClients, recent)) >= mostOfAddress) return false
  return (await query(ledger).$count(oauthClients, unapproved())) < mostUnapproved
}

const unapproved = () =>
  and(
    like(oauthClients.createdBy, `${registrationPrefix}%`),
    not(hasRow(oauthGrants, eq(oauthGrants.clientId, oauthClients.id))),
  )

/** Removes those that nobody has approved. */
export async function removeUnapproved({ ledger, clock }: Pick<OAuthDependencies, 'ledger' | 'clock'>): Promise<void> {
  const old = and(unapproved(), lt(oauthClients.createdAt, clock.now() - unapprovedMilliseconds))
  if ((await query(ledger).$count(oauthClients, old)) === 0) return
  await ledger.write([statement(remove(oauthClients).where(old))])
}
