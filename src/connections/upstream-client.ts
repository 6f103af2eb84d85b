/**
 * As which client this installation speaks to an authorization server, in the order of MCP (Client Registration): the
 * one that an operator registered, a client id metadata document, or one that registers itself (RFC 7591). A client
 * that registered itself is kept for its issuer and address of return, and is made anew for another.
 */
import { z } from 'zod'
import type { Fetch } from '../members/identity-providers/bounded-fetch.ts'
import { ProviderRefusal } from '../members/identity-providers/provider-refusal.ts'
import { forgetSecret, keepSecret, openSecret } from '../store/keys/secrets.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import type { AuthorizationServer } from './discovery.ts'
import { configuredClient, type PersonalServer } from './personal-server.ts'

export interface UpstreamClient {
  clientId: string
  clientSecret: string | null
}

type Dependencies = Pick<ConnectionDependencies, 'state' | 'ledger' | 'masterKey' | 'clock' | 'baseUrl'>

/** Where the browser comes back to. Each server has its own, so that the answer of one is never taken for another's. */
export const redirectUriOf = ({ baseUrl }: Pick<Dependencies, 'baseUrl'>, serverId: string): string =>
  `${baseUrl()}/v1/connections/callback/${serverId}`

/** The address of the client id metadata document, which is the client's id. */
const documentUrlOf = ({ baseUrl }: Pick<Dependencies, 'baseUrl'>, serverId: string): string =>
  `${baseUrl()}/v1/connections/clients/${serverId}`

const clientName = 'Gatehouse'

/** The client id metadata document of a server (draft-ietf-oauth-client-id-metadata-document). */
export const clientDocument = (dependencies: Pick<Dependencies, 'baseUrl'>, serverId: string) => ({
  client_id: documentUrlOf(dependencies, serverId),
  client_uri: dependencies.baseUrl(),
  ...registration(dependencies, serverId, 'none'),
})

const registration = (dependencies: Pick<Dependencies, 'baseUrl'>, serverId: string, method: string) => ({
  client_name: clientName,
  redirect_uris: [redirectUriOf(dependencies, serverId)],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: method,
  application_type: 'web',
})

/** Rejects with a `ProviderRefusal` where there is no way to be known there. */
export async function upstreamClient(
  dependencies: Dependencies,
  server: PersonalServer,
  authorizationServer: AuthorizationServer,
  fetch: Fetch,
): Promise<UpstreamClient> {
  const configured = await configuredClient(dependencies, server)
  if (configured !== null) return configured
  const hasDocument = dependencies.baseUrl().startsWith('https:')
  if (hasDocument && authorizationServer.client_id_metadata_document_supported === true) {
    return { clientId: documentUrlOf(dependencies, server.id), clientSecret: null }
  }
  if (authorizationServer.registration_endpoint === undefined) {
    throw new ProviderRefusal(
      'provider_refused_client',
      'Register a client at the authorization server and write it as personal_oauth: it takes no registration',
    )
  }
  return await registeredClient(dependencies, server, authorizationServer, fetch)
}

const keptSchema = z.object({
  issuer: z.string(),
  redirect_uri: z.string(),
  client_id: z.string(),
  client_secret: z.string().nullable(),
})

const secretName = (serverId: string): string => `mcp-registered-client:${serverId}`

async function registeredClient(
  dependencies: Dependencies,
  { id }: PersonalServer,
  authorizationServer: AuthorizationServer,
  fetch: Fetch,
): Promise<UpstreamClient> {
  const { ledger, masterKey, clock } = dependencies
  const { issuer } = authorizationServer
  const redirect_uri = redirectUriOf(dependencies, id)
  const kept = await keptClient(dependencies, id)
  if (kept?.issuer === issuer && kept.redirect_uri === redirect_uri) return asClient(kept)
  const made = await register(dependencies, id, authorizationServer, fetch)
  const text = JSON.stringify({ issuer, redirect_uri, ...made })
  await ledger.write([
    ...(kept === null ? [] : [forgetSecret(secretName(id))]),
    keepSecret(masterKey, secretName(id), text, clock.now()),
  ])
  // Of two that register at once the first stays.
  return asClient((await keptClient(dependencies, id)) ?? made)
}

const asClient = ({ client_id, client_secret }: Registered): UpstreamClient => ({
  clientId: client_id,
  clientSecret: client_secret,
})

async function keptClient({ ledger, masterKey }: Dependencies, id: string) {
  const text = await openSecret(ledger, masterKey, secretName(id))
  return text === null ? null : keptSchema.parse(JSON.parse(text))
}

/** The authorization server no longer knows the client: the next connection registers another. */
export const forgetRegisteredClient = async ({ ledger }: Dependencies, serverId: string): Promise<void> => {
  await ledger.write([forgetSecret(secretName(serverId))])
}

const registeredSchema = z.looseObject({
  client_id: z.string().min(1).max(2048),
  client_secret: z.string().min(1).max(4096).nullable().default(null),
})
type Registered = Pick<z.infer<typeof registeredSchema>, 'client_id' | 'client_secret'>

/** RFC 7591 section 3. */
async function register(
  dependencies: Dependencies,
  serverId: string,
  { registration_endpoint, token_endpoint_auth_methods_supported: methods }: AuthorizationServer,
  fetch: Fetch,
): Promise<Registered> {
  const known = ['none', 'client_secret_basic', 'client_secret_post']
  const method = known.find((one) => methods?.includes(one) ?? true) ?? 'client_secret_basic'
  const answer = await fetch(registration_endpoint ?? '', {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(registration(dependencies, serverId, method)),
  })
  const text = await answer.text()
  try {
    if (!answer.ok) throw new Error(`The registration endpoint answered ${answer.status}`)
    const { client_id, client_secret } = registeredSchema.parse(JSON.parse(text))
    return { client_id, client_secret }
  } catch (error) {
    throw new ProviderRefusal(
      'provider_refused_client',
      `The authorization server registered no client (${answer.status}): write one as personal_oauth`,
      { cause: error },
    )
  }
}
