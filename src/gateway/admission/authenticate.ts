/** Authenticates a request by its API token or OAuth access token, and checks that the token is valid now. */
import { Failure } from '../../failure.ts'
import { requireAudience } from '../../identity/delegation.ts'
import { bearerSecret, hashSecret, secretKind } from '../../identity/secret.ts'
import { type GovernedToken, tokenStatus } from '../../tokens/governed-token.ts'
import { requireCaller } from '../../workloads/jwt-callers.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { refuseDepleted } from './depleted-token.ts'
import { resourceName } from './resource-name.ts'

/**
 * Finds the token. Without a usable header the code is `missing_api_key`. A secret of another form or with a wrong
 * checksum is `invalid_api_token` without a lookup. A state that is not loaded is `not_ready`, a stale one
 * `token_state_stale`. A draining gateway refuses every request with `draining` and records known tokens.
 */
export function authenticate(exchange: Exchange, gateway: Gateway): void {
  if (gateway.draining) refuseDraining(exchange, gateway)
  authenticateDraining(exchange, gateway)
}

function refuseDraining(exchange: Exchange, gateway: Gateway): never {
  try {
    authenticateDraining(exchange, gateway)
  } catch {
    // A draining gateway does not report a bad token; the next gateway will.
  }
  throw new Failure('draining')
}

/** As `authenticate`, but also during a drain, for requests that arrived before it began. */
export function authenticateDraining(exchange: Exchange, gateway: Gateway): void {
  const { headers } = exchange.request
  const bearer = bearerSecret(headers.get('authorization'))
  const secret = bearer ?? apiKey(exchange)
  if (secret === null) throw missingKey(exchange)
  const caller = bearer === null ? null : gateway.jwtCallers.callerOf(bearer, gateway)
  if (caller !== null) {
    exchange.workload = caller
    exchange.tokenHash = gateway.worker.view.workloadIdentities.get(caller.identity.id)?.tokenHash ?? ''
    checkToken(exchange, gateway)
    refuseDepleted(exchange, gateway)
    return
  }
  const kind = secretKind(secret)
  // Access tokens are bearer tokens only (RFC 6750 section 2.1), as `bearer_methods_supported` states.
  if (kind !== 'token' && (kind !== 'oauthAccess' || bearer === null)) throw new Failure('invalid_api_token')
  exchange.tokenHash = hashSecret(secret)
  checkToken(exchange, gateway)
  refuseDepleted(exchange, gateway)
}

/** Routes that Anthropic clients call with `x-api-key`. Google's clients call theirs with `x-goog-api-key`. */
const apiKeyFamilies: ReadonlySet<string> = new Set(['messages', 'count_tokens', 'models'])

function apiKeyHeader({ dialect, family }: Exchange): string | null {
  if (dialect.family === 'gemini') return 'x-goog-api-key'
  return apiKeyFamilies.has(family) ? 'x-api-key' : null
}

/** Names both headers on routes whose clients send the token in one of their own. */
function missingKey(exchange: Exchange): Failure {
  const name = apiKeyHeader(exchange)
  if (name === null) return new Failure('missing_api_key')
  return new Failure('missing_api_key', { message: `Send Authorization: Bearer <API token>, or ${name}: <API token>` })
}

/** Read only on routes whose clients send it, and only without an Authorization header (gateway/README.md). */
function apiKey(exchange: Exchange): string | null {
  const name = apiKeyHeader(exchange)
  const key = name === null ? '' : (exchange.request.headers.get(name) ?? '')
  return key === '' ? null : key
}

/**
 * Checks the present record of the token. Called on arrival and after every wait, because the token may have been
 * revoked meanwhile (fleet/README.md rule R6).
 */
export function checkToken(
  exchange: Pick<Exchange, 'tokenHash' | 'token' | 'family'> & Partial<Pick<Exchange, 'workload'>>,
  gateway: Pick<Gateway, 'worker' | 'clock'>,
): void {
  const { worker, clock } = gateway
  worker.status.assertCurrent()
  if (exchange.workload) requireCaller(exchange.workload, gateway)
  const hash = required(exchange.tokenHash)
  const token = lookUp(worker.view.token, hash, worker.view)
  if (token === null) throw new Failure('invalid_api_token')
  exchange.token = token
  const status = tokenStatus(token, clock.now())
  const revoked = worker.view.isRevoked(hash)
  if (status !== 'active' || revoked) throw refused(resourceName(token.id, worker.status), status)
  if (token.delegation !== undefined) requireAudience(token.delegation, resourceOf(exchange.family, worker.status))
}

/**
 * Throws if the exchange was cut or its token is no longer valid. The runner calls it after every stage that waited.
 * A stage calls it only between two waits of its own, where it would reserve or send something.
 */
export function checkLive(exchange: Exchange, gateway: Pick<Gateway, 'worker' | 'clock'>): void {
  if (exchange.cut !== null) throw exchange.cut.failure
  if (exchange.tokenHash !== null) checkToken(exchange, gateway)
}

/** The MCP endpoint is a resource of its own (RFC 8707; oauth/README.md). */
const resourceOf = (family: string, { gatewayUrl }: Gateway['worker']['status']): string =>
  family === 'mcp' ? `${gatewayUrl}/mcp` : gatewayUrl

function refused(resource: string, status: ReturnType<typeof tokenStatus>): Failure {
  if (status === 'expired') return new Failure('tokens.expired', { message: `${resource} has expired` })
  const become = status === 'active' ? 'revoked or replaced' : status
  return new Failure('invalid_api_token', { message: `${resource} has been ${become}` })
}

/** An unreadable state is an outage, never a bad credential: clients discard keys on a 401. */
function lookUp(token: Gateway['worker']['view']['token'], hash: string, view: object): GovernedToken | null {
  try {
    return token.call(view, hash)
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : new Failure('dependency_unavailable', { cause: thrown })
  }
}
