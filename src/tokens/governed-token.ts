/**
 * A token as gateways use it for decisions: one row of the state database. What a person would recognise it by (name,
 * prefix, creator) is in the ledger only.
 */

import type { Delegation } from '../identity/delegation.ts'
import type { KeyClass } from '../identity/key-class.ts'
import type { Role } from '../identity/permissions.ts'

export const purposes = ['general', 'gateway_runtime', 'integration'] as const
export type Purpose = (typeof purposes)[number]

export const principalTypes = ['api_token', 'gateway_runtime'] as const
export type PrincipalType = (typeof principalTypes)[number]

export interface GovernedToken {
  id: string
  hash: string
  purpose: Purpose
  principalType: PrincipalType
  keyClass: KeyClass
  gatewayId: string | null
  teamId: string | null
  userId: string | null
  provider: string | null
  /** Exact model ids or `*` globs; null allows every model. */
  modelFilter: readonly string[] | null
  roles: readonly Role[]
  ownerKind: 'user' | 'team'
  ownerId: string
  /** The team whose readers see this token's events (handbook/tokens.md). */
  eventTeamId: string | null
  policyIds: readonly string[]
  accessPolicyIds: readonly string[]
  budgetId: string | null
  metadataTrust: 'none' | 'caller'
  /** Its labels, from which dimensions of attribution may take their values. */
  metadata: Readonly<Record<string, string>>
  /** Whether it is shown each tool of MCP servers, or two tools that find and call them. */
  mcpTools: 'listed' | 'searched'
  /** The limits that a request draws on, its own first (usage/lease/README.md rule 1). */
  accounts: readonly TokenAccount[]
  /** Milliseconds since the epoch; null where it never comes. */
  expiresAt: number | null
  /** The instant from which a rotated token is refused: now, or the end of its grace period. */
  rotatedAt: number | null
  revokedAt: number | null
  version: number
  /** Set on OAuth access tokens, whose permissions are listed here and come from no role. */
  delegation?: Delegation
}

/** The limits of a token as accounts; a clone's list holds its source's too, a rotation's is its predecessor's. */
export interface TokenAccount {
  /** The id of the token that the account was made with. */
  id: string
  maxRequests: number | null
  /** Nano-dollars. */
  maxBudget: number | null
  rateLimitRpm: number | null
  rateLimitTpm: number | null
}

export type TokenStatus = 'active' | 'revoked' | 'expired' | 'rotated' | 'budget_exhausted' | 'request_exhausted'

/** The status at an instant, computed and never stored, so that no background job is needed. */
export function tokenStatus(
  token: Pick<GovernedToken, 'expiresAt' | 'rotatedAt' | 'revokedAt'>,
  now: number,
): Exclude<TokenStatus, 'budget_exhausted' | 'request_exhausted'> {
  if (token.revokedAt !== null) return 'revoked'
  if (token.rotatedAt !== null && now >= token.rotatedAt) return 'rotated'
  if (token.expiresAt !== null && now >= token.expiresAt) return 'expired'
  return 'active'
}

/** Matches a model id against a filter of exact names and `*` globs (gateway/README.md). */
export function modelAllowed(filter: readonly string[] | null, model: string): boolean {
  return filter === null || someGlobMatches(filter, model)
}

export function someGlobMatches(patterns: readonly string[], text: string): boolean {
  for (const pattern of patterns) if (globMatches(pattern, text)) return true
  return false
}

/** Linear-time glob: `*` stands for any run of characters, everything else for itself. */
export function globMatches(pattern: string, text: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === text
  if (!text.startsWith(pattern.slice(0, star))) return false
  if (star === pattern.length - 1) return true
  const parts = pattern.split('*')
  const [first = ''] = parts
  const last = parts.at(-1) ?? ''
  if (text.length < first.length + last.length || !text.endsWith(last)) return false
  const end = text.length - last.length
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, from)
    if (found < 0 || found + part.length > end) return false
    from = found + part.length
  }
  return true
}
