/** Clones a token: the clone has an equal or narrower scope, and its use also draws on its source's accounts. */

import { and, eq } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { condition, hasRow } from '../../store/query.ts'
import { tokens } from '../../store/schema/state/tokens.ts'
import { accountsWith, creatorStands, findCreator, withinCreator } from '../creation/creator.ts'
import { type Actor, mint, scopeDetails, tokenEvent } from '../creation/minting.ts'
import { scopeAsked } from '../creation/narrow-scope.ts'
import { metadataWidened, widenedField } from '../creation/narrowing.ts'
import { checkGrant, checkProfile, checkReferences, namedStand, ownershipOf } from '../creation/rules.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { tokenStatus } from '../governed-token.ts'
import { isExhausted } from '../limits/depletion.ts'
import { requireStateRow } from '../stored-token.ts'
import { type CloneTokenBody, tokenMetadata } from '../token-body.ts'
import { requireToken } from '../visibility.ts'
import type { MadeToken } from './create.ts'

/** Throws `not_found`, `token_not_active`, `token_scope_widened` naming the first wider field, and as create does. */
export async function cloneToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  body: CloneTokenBody,
): Promise<MadeToken> {
  const source = await requireToken(deps.ledger, actor.principal, id)
  const now = deps.clock.now()
  if (tokenStatus(source, now) !== 'active' || (await isExhausted(deps.depletion, source))) {
    throw new Failure('token_not_active')
  }
  const creator = await findCreator(deps, actor.principal)
  const scope = scopeAsked(withinCreator(source, creator), body, now)
  const metadata = { ...source.metadata, ...body.metadata }
  const wider = widenedField(source, scope) ?? (metadataWidened(source.metadata, metadata) ? 'metadata' : null)
  if (wider !== null) throw new Failure('token_scope_widened', { param: wider })
  if (!tokenMetadata.safeParse(metadata).success) throw new Failure('invalid_parameter', { param: 'metadata' })
  checkProfile(source, scope)
  const inherited = creator === null ? [source] : [source, creator.token]
  await checkReferences(scope, deps, inherited)
  await checkGrant(actor.principal, scope, deps.ledger, creator)

  const only = await requireStateRow(deps.state, source.id)
  const ownership = await ownershipOf(scope, deps.ledger)
  const name = body.name ?? source.name
  const accounts = { beside: accountsWith(only.accountIds, creator) }
  const { token, secret, state, ledger } = mint(
    { name, metadata, profile: source, scope, ownership, createdBy: actor.principal.name, sourceTokenId: id, accounts },
    deps,
  )
  const reason = body.reason === undefined ? {} : { reason: body.reason }
  const details = { token_id: token.id, name, source_token_id: id, ...reason, ...scopeDetails(token) }
  const { eventTeamId } = ownership
  const [named, stands] = [namedStand(scope, inherited), creatorStands(creator)]
  const { head } = await deps.recorder.change({
    event: tokenEvent({ type: 'token.cloned', actor, token, eventTeamId, details }, deps),
    // The source was narrowed, rotated or revoked meanwhile, so this clone was checked against an outdated scope.
    guard: condition(and(hasRow(tokens, and(eq(tokens.id, id), eq(tokens.version, source.version))), named, stands)),
    state,
    ledger,
  })
  return { token: { ...token, version: head.version }, secret }
}
