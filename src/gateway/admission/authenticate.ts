/** Who is asking: the API or OAuth access token that the request shows, and whether it may be used at this instant. */
import { Failure } from '../../failure.ts'
import { requireAudience } from '../../identity/delegation.ts'
import { bearerSecret, hashSecret, secretKind } from '../../identity/secret.ts'
import { type GovernedToken, tokenStatus } from '../../tokens/governed-token.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { refuseDepleted } from './depleted-token.ts'
import { resourceName } from './resource-name.ts'

/**
 * Finds the token. Without a usable header `missing_api_key`; what is no token of ours, by form or checksum,
 * `invalid_api_token` with no look-up; a state that is not loaded or too old `not_ready`, `token_state_stale`. A
 * gateway that stops refuses everybody, `draining`, and on record whom it knows.
 */
export function authenticate(exchange: Exchange, gateway: Gateway): void {
  if (gateway.draining) refuseDraining(exchange, gateway)
  identify(exchange, gateway)
}

function refuseDraining(exchange: Exchange, gateway: Gateway): never {
  try {
    identify(exchange, gateway)
  } catch {
    // What is wrong with a token, the gateway that is asked next will say.
  }
  throw new Failure('draining')
}

/** As `authenticate`, for who has been let in: what had come before the gateway began to stop is served. */
export function identify(exchange: Exchange, gateway: Gateway): void {
  const { headers } = exchange.request
  const bearer = bearerSecret(headers.get('authorization'))
  const secret = bearer ?? apiKey(exchange)
  if (secret === null) throw new Failure('missing_api_key')
  const kind = secretKind(secret)
  // Access tokens are bearer tokens only (RFC 6750 section 2.1): bearer_methods_supported says so.
  if (kind !== 'token' && (kind !== 'oauthAccess' || bearer === null)) throw new Failure('invalid_api_token')
  exchange.tokenHash = hashSecret(secret)
  lookAtToken(exchange, gateway)
  refuseDepleted(exchange, gateway)
}

/** Routes that Anthropic's clients call with `x-api-key`. */
const apiKeyFamilies: ReadonlySet<string> = new Set(['messages', 'models'])

/** Counts only where clients send it, and where there is no Authorization (gateway/README.md). */
function apiKey({ request: { headers }, family }: Exchange): string | null {
  const key = apiKeyFamilies.has(family) ? (headers.get('x-api-key') ?? '') : ''
  return key === '' ? null : key
}

/**
 * Looks at the token's record as it is now: on arrival, and again after every wait, because it may have been revoked
 * meanwhile (fleet/README.md rule R6).
 */
export function lookAtToken(
  exchange: Pick<Exchange, 'tokenHash' | 'token' | 'family'>,
  { worker, clock }: Gateway,
): void {
  worker.standing.assertCurrent()
  const hash = required(exchange.tokenHash)
  const token = lookUp(worker.view.token, hash, worker.view)
  if (token === null) throw new Failure('invalid_api_token')
  exchange.token = token
  const status = tokenStatus(token, clock.now())
  const denied = worker.view.denied(hash)
  if (status !== 'active' || denied) throw refused(resourceName(token.id, worker.standing), status)
  if (token.delegation !== undefined) requireAudience(token.delegation, resourceOf(exchange.family, worker.standing))
}

/** The MCP surface is a resource of its own (RFC 8707; oauth/README.md). */
const resourceOf = (family: string, { gatewayUrl }: Gateway['worker']['standing']): string =>
  family === 'mcp' ? `${gatewayUrl}/mcp` : gatewayUrl

function refused(resource: string, status: ReturnType<typeof tokenStatus>): Failure {
  if (status === 'expired') return new Failure('tokens.expired', { message: `${resource} has expired` })
  const become = status === 'active' ? 'revoked or replaced' : status
  return new Failure('invalid_api_token', { message: `${resource} has been ${become}` })
}

/** A state file that cannot be read is an outage, never a bad credential: clients throw keys away on a 401. */
function lookUp(token: Gateway['worker']['view']['token'], hash: string, view: object): GovernedToken | null {
  try {
    return token.call(view, hash)
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : new Failure('dependency_unavailable', { cause: thrown })
  }
}
