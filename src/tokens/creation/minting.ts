/**
 * Makes tokens: draws a secret, writes the rows of both databases, and records an event. The secret is only in the
 * return value. Create, rotate, clone and the first start all end here.
 */

import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { Event } from '../../events/event.ts'
import type { EventType } from '../../events/event-types.ts'
import { changeVersion } from '../../events/recorder.ts'
import type { Principal } from '../../identity/principal.ts'
import { hashSecret, makeSecret, secretHint } from '../../identity/secret.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Statement } from '../../store/statement.ts'
import type { TokenDependencies } from '../dependencies.ts'
import type { TokenProfile, TokenScope } from '../scope.ts'
import { insertToken, limitAccount, type StoredToken } from '../stored-token.ts'
import type { Ownership } from './rules.ts'

/** The actor of a change and its request. */
export interface Actor {
  principal: Principal
  requestId: string
}

export interface Draft {
  name: string
  metadata: Record<string, string>
  profile: TokenProfile
  scope: TokenScope
  ownership: Ownership
  createdBy: string | null
  rotatedFrom?: string
  sourceTokenId?: string
  /** Accounts that it draws on instead of its own (rotation), or besides it (clone). */
  accounts?: { instead: readonly string[] } | { beside: readonly string[] }
  /** A secret made beforehand; otherwise a new one is drawn. */
  secret?: string
}

export interface Minted {
  token: Omit<StoredToken, 'version'>
  secret: string
  state: readonly Statement[]
  ledger: readonly Statement[]
}

/** The rows of a new token; nothing is written yet. */
export function mint(draft: Draft, deps: Pick<TokenDependencies, 'clock' | 'newId' | 'randomBytes'>): Minted {
  const secret = draft.secret ?? makeSecret('token', deps.randomBytes)
  const id = deps.newId()
  const { ownerKind, ownerId, eventTeamId } = draft.ownership
  const { purpose, principalType, keyClass } = draft.profile
  const accountIds = accountsOf(id, draft.accounts)
  const token: Minted['token'] = {
    ...draft.scope,
    purpose,
    principalType,
    keyClass,
    id,
    name: draft.name,
    tokenPrefix: secretHint(secret),
    metadata: draft.metadata,
    ownerKind,
    ownerId,
    rotatedAt: null,
    revokedAt: null,
    revocation: null,
    rotatedFrom: draft.rotatedFrom ?? null,
    rotatedToId: null,
    sourceTokenId: draft.sourceTokenId ?? null,
    createdAt: deps.clock.now(),
    createdBy: draft.createdBy,
    lastUsedAt: null,
    accountId: accountIds[0] ?? id,
  }
  const rows = insertToken(token, { hash: hashSecret(secret), eventTeamId, accountIds }, changeVersion)
  return { token, secret, state: [rows.state, ...limitAccount(token.accountId, token)], ledger: rows.ledger }
}

function accountsOf(id: string, accounts: Draft['accounts']): readonly string[] {
  if (accounts === undefined) return [id]
  return 'instead' in accounts ? accounts.instead : [id, ...accounts.beside]
}

export interface TokenEvent {
  type: EventType
  /** Default `ok`. */
  reason?: string
  actor: Actor
  /** The token that was acted on; null if none was made. */
  token: Pick<StoredToken, 'id' | 'keyClass'> | null
  eventTeamId: string | null
  details: Record<string, unknown>
}

/** An event about a token. Its `config_version` is written by the recorder, with the version the change makes. */
export const tokenEvent = (event: TokenEvent, { clock, newId }: Pick<TokenDependencies, 'clock' | 'newId'>): Event =>
  controlPlaneEvent({
    type: event.type,
    ...(event.reason !== undefined && { reason: event.reason }),
    principal: event.actor.principal,
    requestId: event.actor.requestId,
    tokenId: event.token?.id ?? null,
    keyClass: event.token?.keyClass ?? null,
    teamId: event.eventTeamId,
    details: event.details,
    configVersion: 0,
    clock,
    newId,
  })

/** What an event says of a token's scope: the limits it has, by their API names. */
export function scopeDetails(token: TokenScope & TokenProfile): Record<string, unknown> {
  const all = {
    purpose: token.purpose,
    principal_type: token.principalType,
    key_class: token.keyClass,
    roles: token.roles,
    gateway_id: token.gatewayId,
    team_id: token.teamId,
    user_id: token.userId,
    provider: token.provider,
    model_filter: token.modelFilter,
    budget_id: token.budgetId,
    policy_ids: token.policyIds,
    access_policy_ids: token.accessPolicyIds,
    metadata_trust: token.metadataTrust,
    mcp_tools: token.mcpTools,
    max_budget: token.maxBudget === null ? null : fromNano(token.maxBudget),
    max_requests: token.maxRequests,
    rate_limit_rpm: token.rateLimitRpm,
    rate_limit_tpm: token.rateLimitTpm,
    expires_at: token.expiresAt === null ? null : timestamp(token.expiresAt),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
}
