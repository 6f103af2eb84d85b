/**
 * Makes the `WWW-Authenticate` header of a refusal (RFC 6750 section 3) with the address of the metadata (RFC 9728
 * section 5.1).
 */
import type { Failure } from '../failure.ts'

/**
 * Returns null when the refusal has no challenge: of the 403s only a missing scope has one (oauth/README.md). Without a
 * credential there is no error code. `origin` serves the resource's metadata, null when unknown; `path` is the path of
 * the resource, `scope` what it needs in any case: MCP clients ask for that first (MCP, Scope Selection Strategy).
 */
export function challengeOf(
  { code, status, extra }: Failure,
  origin: string | null,
  path = '',
  scope: string | null = null,
): string | null {
  if (status !== 401 && code !== 'insufficient_scope') return null
  const parameters: Record<string, string> = {}
  if (code === 'insufficient_scope') {
    parameters.error = 'insufficient_scope'
    if (typeof extra.scope === 'string') parameters.scope = extra.scope
  } else if (code !== 'missing_api_key') parameters.error = 'invalid_token'
  if (parameters.scope === undefined && scope !== null) parameters.scope = scope
  if (origin !== null) parameters.resource_metadata = `${origin}/.well-known/oauth-protected-resource${path}`
  const list = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`)
  return ['Bearer', list.join(', ')].filter(Boolean).join(' ')
}
