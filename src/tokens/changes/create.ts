/** Creates a token from a request (POST /v1/tokens). */

import { and } from 'drizzle-orm'
import { condition } from '../../store/query.ts'
import { accountsWith, creatorStands, findCreator } from '../creation/creator.ts'
import { type Actor, mint, scopeDetails, tokenEvent } from '../creation/minting.ts'
import { checkGrant, checkProfile, checkReferences, namedStand, ownershipOf, scopeOf } from '../creation/rules.ts'
import type { TokenDependencies } from '../dependencies.ts'
import type { StoredToken } from '../stored-token.ts'
import type { CreateTokenBody } from '../token-body.ts'

export interface MadeToken {
  token: StoredToken
  /** Shown once and not stored. */
  secret: string
}

/** Throws `invalid_parameter` (422) and `permission_denied` (403), naming the field, before anything is written. */
export async function createToken(deps: TokenDependencies, actor: Actor, body: CreateTokenBody): Promise<MadeToken> {
  const creator = await findCreator(deps, actor.principal)
  const inherited = creator === null ? [] : [creator.token]
  const scope = scopeOf(body, deps.clock.now(), creator)
  const profile = { purpose: body.purpose, principalType: body.principal_type, keyClass: body.key_class }
  checkProfile(profile, scope)
  await checkReferences(scope, deps, inherited)
  await checkGrant(actor.principal, scope, deps.ledger, creator)
  const ownership = await ownershipOf(scope, deps.ledger)
  const { token, secret, state, ledger } = mint(
    {
      ...{ name: body.name, metadata: body.metadata, profile, scope, ownership, createdBy: actor.principal.name },
      accounts: { beside: accountsWith([], creator) },
    },
    deps,
  )
  const details = { token_id: token.id, name: token.name, ...scopeDetails(token) }
  const { eventTeamId } = ownership
  const event = tokenEvent({ type: 'token.created', actor, token, eventTeamId, details }, deps)
  const [named, stands] = [namedStand(scope, inherited), creatorStands(creator)]
  const guard = condition(and(named, stands))
  const { head } = await deps.recorder.change({ event, guard, state, ledger })
  return { token: { ...token, version: head.version }, secret }
}
