/**
 * Applications that nobody here has looked at: those whose id is the address of their metadata, and those that
 * registered themselves. They may ask for the use of models and tools only; the page that asks the person says what is
 * known of them.
 */
import { z } from 'zod'
import { nameText } from '../../identity/free-text.ts'
import { isLoopbackRedirect, redirectUriFault } from '../authorize/redirect-uri.ts'
import { readScope, type Scope } from '../scope.ts'

/** What an operator need not decide about first. */
export const unvettedScopes: readonly Scope[] = ['gateway:invoke', 'mcp:invoke']

export const unvettedGrants = ['authorization_code', 'refresh_token'] as const

/** The members of client metadata that are looked at (RFC 7591 section 2); the others are ignored. */
export const clientMetadata = z.looseObject({
  client_name: nameText(100).optional(),
  redirect_uris: z.array(z.string().max(2000)).min(1).max(20),
  grant_types: z.array(z.string().max(100)).max(20).optional(),
  response_types: z.array(z.string().max(100)).max(20).optional(),
  scope: z.string().max(1000).optional(),
  token_endpoint_auth_method: z.string().max(100).optional(),
})

/** Those that can be redirected to; a client may name others for other servers. */
export const usableRedirects = (uris: readonly string[]): string[] => [
  ...new Set(uris.filter((uri) => redirectUriFault(uri) === null)),
]

/** What it asks for of what it may; all of that where it does not say, or names scopes of others only. */
export function unvettedScope(text: string | undefined): Scope[] {
  const words = readScope(text ?? '') ?? []
  const asked = unvettedScopes.filter((scope) => words.includes(scope))
  return asked.length > 0 ? asked : [...unvettedScopes]
}

export type ClientOrigin = 'administrator' | 'document' | 'registration'

/** Whether an id is the address of a client's metadata. Ids that are made or chosen here have no colon. */
export const isDocumentId = (id: string): boolean => id.startsWith('https://')

export const registrationPrefix = 'registration:'

export function originOf({ id, createdBy }: { id: string; createdBy: string }): ClientOrigin {
  if (isDocumentId(id)) return 'document'
  return createdBy.startsWith(registrationPrefix) ? 'registration' : 'administrator'
}

/**
 * Whether a redirect URI is one of a client's. Programs on a person's own host listen at any port that is free, so the
 * port of a loopback address in a client's own metadata does not count (RFC 8252 section 7.3).
 */
export function hasRedirect(
  { id, redirectUris }: { id: string; redirectUris: readonly string[] },
  uri: string,
): boolean {
  if (redirectUris.includes(uri)) return true
  if (!isDocumentId(id) || redirectUriFault(uri) !== null || !isLoopbackRedirect(uri)) return false
  const wanted = withoutPort(uri)
  return redirectUris.some((known) => isLoopbackRedirect(known) && withoutPort(known) === wanted)
}

function withoutPort(uri: string): string {
  const url = new URL(uri)
  url.port = ''
  return url.href
}
