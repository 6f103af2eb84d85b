/** Whose an MCP session is, and with what credential it was last used. */
import { bearerSecret } from '../../identity/secret.ts'
import type { SessionToken } from '../../mcp/surface/session-token.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { WorkloadCaller } from '../../workloads/workload-identity.ts'
import { type Exchange, required } from '../exchange.ts'

type Caller = Pick<Exchange, 'token' | 'workload'>

/**
 * An OAuth grant, whose access tokens follow each other, or a token's own account, which its rotations keep. Clients do
 * not begin a new session when their credential is renewed. Callers with JWTs share a token, so each subject of a
 * workload identity is an owner of its own.
 */
export function sessionOwner({ token, workload }: Caller): string {
  const owner = ownerOf(required(token))
  return workload === null ? owner : `${owner}/${workload.identity.id}/${workload.subject}`
}

const ownerOf = ({ id, accounts, delegation }: GovernedToken): string =>
  delegation === undefined ? `account/${accounts[0]?.id ?? id}` : `grant/${delegation.grantId}`

/** The callers whose sessions were last used with a JWT. */
const workloads = new WeakMap<SessionToken, WorkloadCaller>()

/** What a session keeps of the credential of this request. */
export function sessionToken({ token, workload, request }: Caller & Pick<Exchange, 'request'>): SessionToken {
  const { id, hash, userId } = required(token)
  const isPerson = workload === null && userId !== null
  const secret = isPerson ? bearerSecret(request.headers.get('authorization')) : null
  const kept = secret === null ? { id, hash } : { id, hash, secret }
  if (workload !== null) workloads.set(kept, workload)
  return kept
}

/** The caller of a session that was last used with a JWT; null for another credential. */
export const workloadOf = (token: SessionToken): WorkloadCaller | null => workloads.get(token) ?? null
