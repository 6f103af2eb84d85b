/** What the routes of workload identities share: conditions of a change, the acting token, the record. */
import { and, eq, isNull, ne, not, type SQL } from 'drizzle-orm'
import type { z } from 'zod'
import type { RecordCall } from '../api/resource-routes.ts'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { EventType } from '../events/event-types.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import { madeAt } from '../providers/catalog/catalog-change.ts'
import { condition, hasRow, query, statement } from '../store/query.ts'
import { tokens, workloadIdentities } from '../store/schema/state/tokens.ts'
import { findCreator } from '../tokens/creation/creator.ts'
import { checkGrant } from '../tokens/creation/rules.ts'
import { tokenStatus } from '../tokens/governed-token.ts'
import { requireStateRow } from '../tokens/stored-token.ts'
import { requireToken } from '../tokens/visibility.ts'
import type { WorkloadDependencies } from './dependencies.ts'
import { type Revocation, readAttribution, readRevocations, readStoredKeys } from './stored-identity.ts'
import type { revocationSchema, WorkloadIdentityReply } from './workload-identity-resource.ts'

export type IdentityRow = typeof workloadIdentities.$inferSelect

/** The workload identity of this id. Throws `not_found`. */
export async function requireIdentity(
  { state }: Pick<WorkloadDependencies, 'state'>,
  id: string,
): Promise<IdentityRow> {
  const found = and(eq(workloadIdentities.id, id), eq(workloadIdentities.deleted, 0))
  const row = await query(state).select().from(workloadIdentities).where(found).get()
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such workload identity' })
  return row
}

/**
 * The hash of the token that callers act as. Nobody makes callers that may do more than they may themselves: the rules
 * are those of a new token with the same scope. Throws `invalid_parameter` for `token_id`, or `permission_denied`.
 */
export async function requireActingToken(
  deps: WorkloadDependencies,
  principal: Principal,
  id: string,
): Promise<string> {
  const token = await requireToken(deps.ledger, principal, id).catch((thrown: unknown) => {
    if (thrown instanceof Failure && thrown.code === 'not_found') throw wrong('token_id', 'There is no such token')
    throw thrown
  })
  if (token.purpose === 'gateway_runtime') {
    throw wrong('token_id', 'A gateway token calls no model: name a token of purpose general or integration')
  }
  if (tokenStatus(token, deps.clock.now()) !== 'active') {
    throw wrong('token_id', 'This token is not active: name one that is')
  }
  await checkGrant(principal, token, deps.ledger, await findCreator(deps, principal))
  return (await requireStateRow(deps.state, id)).hash
}

export async function requireFreeName({ state }: WorkloadDependencies, name: string, id: string): Promise<void> {
  const { name: named, deleted, id: other } = workloadIdentities
  const taken = and(eq(named, name), ne(other, id), eq(deleted, 0))
  if ((await query(state).$count(workloadIdentities, taken)) === 0) return
  throw new Failure('conflict', { message: 'There is a workload identity of this name already', param: 'name' })
}

export const nameIsFree = (name: string, id: string): SQL => {
  const { name: named, deleted, id: other } = workloadIdentities
  return not(hasRow(workloadIdentities, and(eq(named, name), ne(other, id), eq(deleted, 0))))
}

export const atVersion = ({ id, version }: IdentityRow): SQL => {
  const { id: own, version: present, deleted } = workloadIdentities
  return hasRow(workloadIdentities, and(eq(own, id), eq(present, version), eq(deleted, 0)))
}

export const tokenStands = (id: string): SQL =>
  hasRow(tokens, and(eq(tokens.id, id), eq(tokens.deleted, 0), isNull(tokens.revokedAt), isNull(tokens.rotatedAt)))

interface IdentityChange {
  type: Extract<EventType, `workload.${string}`>
  details: Record<string, unknown>
  guard: SQL | undefined
  state: Parameters<typeof statement>[0]
}

/** Makes a change and its event; gives the version of the state. Throws `conflict` if its guard no longer holds. */
export async function change(
  deps: WorkloadDependencies,
  { principal, requestId }: RecordCall,
  { type, details, guard, state }: IdentityChange,
): Promise<number> {
  const { recorder, clock, newId } = deps
  const event = controlPlaneEvent({ type, principal, requestId, teamId: null, details, configVersion: 0, clock, newId })
  const { head } = await recorder.change({ event, guard: condition(guard), state: [statement(state)], ledger: [] })
  return head.version
}

export function identityRecord(row: IdentityRow): WorkloadIdentityReply {
  const { keys, given } = readStoredKeys(row.keys)
  return {
    id: row.id,
    name: row.name,
    issuer: row.issuer,
    audience: row.audience,
    jwks_url: row.jwksUrl,
    keys: keys.map(({ kid = null, kty, alg = null }) => ({ kid, kty, alg })),
    keys_source: given ? 'given' : row.jwksUrl === null ? 'discovery' : 'jwks_url',
    keys_changed_at: timestamp(row.keysChangedAt),
    condition: row.condition,
    attribution: readAttribution(row.attribution),
    token_id: row.tokenId,
    longest_seconds: row.longestSeconds,
    revoked: readRevocations(row.revoked).map(shownRevocation),
    enabled: row.enabled === 1,
    version: row.version,
    created_at: madeAt(row.id),
  }
}

const shownRevocation = ({ kind, value, until }: Revocation): z.infer<typeof revocationSchema> => ({
  kind,
  value,
  until: until === null ? null : timestamp(until),
})

const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })
