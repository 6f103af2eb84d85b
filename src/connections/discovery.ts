/**
 * Finds out where an MCP server lets people authorize (MCP, Authorization Server Discovery):
 *
 *   1. The server is called without a credential. Its challenge may name its metadata and the scope that is needed.
 *   2. Its protected resource metadata (RFC 9728), there or at the well-known address, names its authorization servers.
 *      A server without such metadata is taken for its own authorization server, as in the first MCP version.
 *   3. The authorization server's metadata (RFC 8414, or OpenID Connect Discovery 1.0) names its endpoints.
 *
 * An issuer in the server's record is the only one that counts. What a document says of itself must be the address that
 * it was asked for; every further address is checked when it is called (`upstream-fetch.ts`).
 */
import { z } from 'zod'
import type { Fetch } from '../members/identity-providers/bounded-fetch.ts'
import { ProviderRefusal } from '../members/identity-providers/provider-refusal.ts'
import type { PersonalServer } from './personal-server.ts'
import { namedOrigins } from './upstream-fetch.ts'

const address = z.url({ protocol: /^https?$/ }).max(2048)
const texts = z.array(z.string().max(1024)).max(500)

const resourceSchema = z.looseObject({
  resource: address,
  authorization_servers: z.array(address).max(20).optional(),
  scopes_supported: texts.optional(),
})

const metadataSchema = z.looseObject({
  issuer: address,
  authorization_endpoint: address,
  token_endpoint: address,
  registration_endpoint: address.optional(),
  revocation_endpoint: address.optional(),
  scopes_supported: texts.optional(),
  code_challenge_methods_supported: texts.optional(),
  token_endpoint_auth_methods_supported: texts.optional(),
  client_id_metadata_document_supported: z.boolean().optional(),
})
export type AuthorizationServer = z.infer<typeof metadataSchema>

export interface Discovered {
  authorizationServer: AuthorizationServer
  /** What tokens are asked for (RFC 8707). */
  resource: string
  /** What the server needs, as it says; null where it does not say. */
  scope: string | null
}

/** Rejects with a `ProviderRefusal`. */
export async function discover(server: PersonalServer, fetch: Fetch): Promise<Discovered> {
  const challenge = await challengeOf(server, fetch)
  const resource = await resourceOf(server, fetch, challenge.resourceMetadata)
  const issuer = issuerOf(server, resource?.authorization_servers ?? [])
  const authorizationServer = await authorizationServerOf(server, issuer, fetch)
  const scope = server.personal.scope ?? challenge.scope ?? resource?.scopes_supported?.join(' ') ?? ''
  return {
    authorizationServer,
    resource: resource?.resource ?? server.url,
    scope: scope === '' ? null : scope,
  }
}

interface Challenge {
  resourceMetadata: string | null
  scope: string | null
}

/** RFC 9728 section 5.1, RFC 6750 section 3. */
async function challengeOf({ url }: PersonalServer, fetch: Fetch): Promise<Challenge> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  })
  const header = answer.status === 401 ? (answer.headers.get('www-authenticate') ?? '') : ''
  return { resourceMetadata: parameterOf(header, 'resource_metadata'), scope: parameterOf(header, 'scope') }
}

export function parameterOf(challenge: string, name: string): string | null {
  const [, quoted, bare] =
    new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"([^"\\\\]*)"|([^\\s",]+))`, 'i').exec(challenge) ?? []
  return quoted ?? bare ?? null
}

async function resourceOf({ url }: PersonalServer, fetch: Fetch, announced: string | null) {
  const { origin, pathname } = new URL(url)
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`
  const path = pathname === '/' ? [] : [`${wellKnown}${pathname}`]
  const places = announced === null ? [...path, wellKnown] : [announced]
  for (const place of places) {
    const document = await documentAt(fetch, place, resourceSchema)
    if (document === null) continue
    if (isResourceOf(url, document.resource)) return document
    throw new ProviderRefusal('invalid_answer', 'The metadata of the MCP server is about another resource')
  }
  if (announced === null) return null
  throw new ProviderRefusal('invalid_answer', 'The MCP server names metadata that cannot be read')
}

/** The server itself, or what lies above it at the same origin (MCP, Canonical Server URI). */
function isResourceOf(url: string, resource: string): boolean {
  const [own, named] = [new URL(url), new URL(resource)]
  const below = named.pathname.endsWith('/') ? named.pathname : `${named.pathname}/`
  return own.origin === named.origin && `${own.pathname}/`.startsWith(below)
}

function issuerOf({ url, personal: { issuer } }: PersonalServer, named: readonly string[]): string {
  if (issuer === undefined) return named[0] ?? new URL(url).origin
  if (named.length === 0 || named.some((one) => isSame(one, issuer))) return issuer
  throw new ProviderRefusal(
    'invalid_answer',
    'The MCP server names another authorization server than its record does: an operator has to look at it',
  )
}

/** Rejects with a `ProviderRefusal` where there is no usable metadata of this issuer. */
export async function authorizationServerOf(
  server: Pick<PersonalServer, 'url' | 'personal'>,
  issuer: string,
  fetch: Fetch,
): Promise<AuthorizationServer> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ]
  for (const place of places) {
    const metadata = await documentAt(fetch, place, metadataSchema)
    if (metadata !== null) return checked(server, issuer, metadata)
  }
  throw new ProviderRefusal('provider_unreachable', `There is no metadata of an authorization server at ${origin}`)
}

function checked(
  server: Pick<PersonalServer, 'url' | 'personal'>,
  issuer: string,
  metadata: AuthorizationServer,
): AuthorizationServer {
  // RFC 8414 section 3.3. An origin with the slash of its empty path is the same address.
  if (!isSame(metadata.issuer, issuer)) {
    throw new ProviderRefusal('invalid_answer', 'The authorization server calls itself by another name')
  }
  const { code_challenge_methods_supported: methods } = metadata
  // Who was not written down by an operator must announce PKCE (MCP, Authorization Code Protection).
  if (methods === undefined ? server.personal.issuer === undefined : !methods.includes('S256')) {
    throw new ProviderRefusal('invalid_answer', 'The authorization server does not announce PKCE with S256')
  }
  const page = new URL(metadata.authorization_endpoint)
  if (page.protocol !== 'https:' && !namedOrigins(server).includes(page.origin)) {
    throw new ProviderRefusal('invalid_answer', 'The page of the authorization server is not at https')
  }
  return metadata
}

const isSame = (one: string, other: string): boolean => new URL(one).href === new URL(other).href

/** Null where there is no such document. Rejects with a `ProviderRefusal` for one that cannot be used. */
async function documentAt<Schema extends z.ZodType>(
  fetch: Fetch,
  place: string,
  schema: Schema,
): Promise<z.infer<Schema> | null> {
  const answer = await fetch(place, { headers: { accept: 'application/json' } })
  if (answer.status !== 200) return null
  const text = await answer.text()
  try {
    return schema.parse(JSON.parse(text))
  } catch (error) {
    throw new ProviderRefusal('invalid_answer', `The document at ${new URL(place).origin} is not of its form`, {
      cause: error,
    })
  }
}
