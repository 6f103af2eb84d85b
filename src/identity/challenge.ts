/** The `WWW-Authenticate` of a refusal (RFC 6750 section 3), and where to learn how to get a token (RFC 9728 section 5.1). */
import type { Failure } from '../failure.ts'

/**
 * Null where the refusal carries none: no 403 but that of a missing scope does (oauth/README.md). Without a credential
 * there is no error code. `origin` is where the resource's metadata is served, null where that is not known yet; `path` is
 * the resource's own there.
 */
export function challengeOf({ code, status, extra }: Failure, origin: string | null, path = ''): string | null {
  if (status !== 401 && code !== 'insufficient_scope') return null
  const parameters: Record<string, string> = {}
  if (code === 'insufficient_scope') {
    parameters.error = 'insufficient_scope'
    if (typeof extra.scope === 'string') parameters.scope = extra.scope
  } else if (code !== 'missing_api_key') parameters.error = 'invalid_token'
  if (origin !== null) parameters.resource_metadata = `${origin}/.well-known/oauth-protected-resource${path}`
  const list = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`)
  return ['Bearer', list.join(', ')].filter(Boolean).join(' ')
}
