/** Updates a token: name and metadata freely, everything else only narrower, and only from the present version. */

import { and, eq } from 'drizzle-orm'
import { requireVersion } from '../../api/entity-tag.ts'
import { changeVersion } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import type { Propagation } from '../../store/propagation.ts'
import { condition, hasRow, newStateVersion, statement, update } from '../../store/query.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import { keptMetadata } from '../../store/schema/token-metadata.ts'
import { type Actor, scopeDetails, tokenEvent } from '../creation/minting.ts'
import { scopeAsked } from '../creation/narrow-scope.ts'
import { widenedField } from '../creation/narrowing.ts'
import { checkProfile, checkReferences, checkRolesAndTeam, namedStand, ownershipOf } from '../creation/rules.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { tokenStatus } from '../governed-token.ts'
import { type LimitUsage, usageOf } from '../limits/limit-usage.ts'
import type { TokenScope } from '../scope.ts'
import { accountLimits, limitAccount, requireStateRow, type StoredToken, scopeColumns } from '../stored-token.ts'
import type { UpdateTokenBody } from '../token-body.ts'
import { requireToken } from '../visibility.ts'

export interface Updated {
  token: StoredToken
  /** Waits for the gateways and reports the propagation. Nothing waits, or can fail, before it is called. */
  propagation: () => Promise<Propagation>
  /** After a change of limits: their use once gateways have returned what no request holds. */
  usage: () => Promise<LimitUsage | null>
}

/**
 * `headers` may contain If-Match. Throws `version_mismatch` for another version, `token_scope_widened` with the first
 * wider field, `token_not_active`, `permission_denied`, `conflict` if another change was faster.
 */
export async function updateToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  body: UpdateTokenBody,
  headers: Headers,
): Promise<Updated> {
  const token = await requireToken(deps.ledger, actor.principal, id)
  requireVersion(headers, token.version)
  if (tokenStatus(token, deps.clock.now()) !== 'active') throw new Failure('token_not_active')
  const scope = await checkedScope(deps, actor, token, body)
  try {
    return await write(deps, actor, token, scope, body)
  } catch (error) {
    const raced = error instanceof Failure && error.code === 'conflict' && headers.has('if-match')
    throw raced ? new Failure('version_mismatch', { cause: error }) : error
  }
}

async function checkedScope(
  deps: TokenDependencies,
  actor: Actor,
  token: StoredToken,
  body: UpdateTokenBody,
): Promise<TokenScope> {
  const widened = (param: string) => new Failure('token_scope_widened', { param })
  if (body.purpose !== undefined && body.purpose !== token.purpose) throw widened('purpose')
  if (body.principal_type !== undefined && body.principal_type !== token.principalType) throw widened('principal_type')
  const scope = scopeAsked(token, body, deps.clock.now())
  const wider = widenedField(token, scope)
  if (wider !== null) throw widened(wider)
  checkProfile(token, scope)
  await checkReferences(scope, deps, [token])
  await checkRolesAndTeam(actor.principal, { ...scope, roles: token.roles }, deps.ledger)
  return scope
}

async function write(
  deps: TokenDependencies,
  actor: Actor,
  token: StoredToken,
  scope: TokenScope,
  { name = token.name, metadata = token.metadata }: UpdateTokenBody,
): Promise<Updated> {
  const only = await requireStateRow(deps.state, token.id)
  const { eventTeamId, ...owner } = await ownershipOf(scope, deps.ledger)
  const columns = { ...scopeColumns(scope), ...owner }
  const changed = { ...token, ...scope, ...owner, name, metadata }
  const details = { token_id: token.id, name, changed: changedFields(token, changed) }
  const limitsChanged = !Bun.deepEquals(accountLimits(scope), accountLimits(token))
  const asRead = and(eq(stateTokens.id, token.id), eq(stateTokens.version, token.version))
  const { head } = await deps.recorder.change({
    event: tokenEvent({ type: 'token.updated', actor, token, eventTeamId, details }, deps),
    guard: condition(and(hasRow(stateTokens, asRead), namedStand(scope, [token]))),
    state: [
      statement(
        update(stateTokens)
          .set({ ...columns, metadata: keptMetadata(metadata), eventTeamId, version: newStateVersion })
          .where(eq(stateTokens.id, token.id)),
      ),
      ...(limitsChanged ? limitAccount(only.accountIds[0] ?? null, scope) : []),
    ],
    ledger: [
      statement(
        update(ledgerTokens)
          .set({ ...columns, name, metadata, version: changeVersion })
          .where(eq(ledgerTokens.id, token.id)),
      ),
    ],
    // A new name removes no right. Only if a right is removed, gateways refuse the token until they have read the
    // change.
    revoked: Bun.deepEquals(scopeColumns(token), scopeColumns(scope)) ? [] : [only.hash],
  })
  return {
    token: { ...changed, version: head.version },
    propagation: () => deps.fleet.propagation(head.version),
    usage: async () => (limitsChanged ? await usageOf(deps, only.accountIds[0] ?? token.id, scope) : null),
  }
}

/** The details of an update event: each changed limit with both values; for metadata only that it changed. */
function changedFields(before: StoredToken, after: Omit<StoredToken, 'version'>): Record<string, unknown> {
  const [from, to] = [before, after].map((token) => ({ ...scopeDetails(token), name: token.name }))
  const fields = [...new Set(Object.keys({ ...from, ...to }))] as (keyof typeof from)[]
  const entries = fields
    .filter((field) => !Bun.deepEquals(from?.[field], to?.[field]))
    .map((field) => [field, { from: from?.[field] ?? null, to: to?.[field] ?? null }])
  const metadata = Bun.deepEquals(before.metadata, after.metadata) ? {} : { metadata: true }
  return { ...Object.fromEntries(entries), ...metadata }
}
