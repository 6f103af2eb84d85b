/**
 * Exchanges a program's code for what the person approved: a session of theirs, or a token in their name. A code for
 * one does not give the other. A session can do all that the person can; a token has no expiry and outlives the
 * sign-in.
 */
import { Failure } from '../../failure.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import { createToken, type MadeToken } from '../../tokens/changes/create.ts'
import { revokeToken } from '../../tokens/changes/revoke.ts'
import { createTokenBody } from '../../tokens/token-body.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { sessionPrincipal } from '../sessions/authenticate-session.ts'
import { type NewSession, startSession } from '../sessions/session.ts'
import {
  type Approval,
  examineCode,
  type Given,
  givenTokenId,
  invalidCode,
  mayGiveToken,
  noteGivenToken,
  noteReplay,
  type PresentedCode,
  tokenPermission,
  useCode,
} from './program-code.ts'

/** A session for a program. Throws `invalid_code`. */
export async function exchangeForSession(
  dependencies: MemberDependencies,
  presented: PresentedCode,
  requestId: string,
): Promise<{ approval: Approval; session: NewSession }> {
  const { clock, recorder } = dependencies
  const approval = await approvalOf(dependencies, presented, requestId)
  if (approval.tokenName !== null) throw invalidCode()
  const { userId, codeHash, clientId, identityId } = approval
  const session = startSession({ ...dependencies, userId, kind: 'program', program: clientId, identityId })
  const event = await memberEvent(dependencies, {
    type: 'auth.session_started',
    principal: approver(approval),
    requestId,
    sessionId: session.id,
    details: { program: clientId },
  })
  const uses = useCode(codeHash, { kind: 'session', id: session.id }, clock.now())
  await onceOrReplay(dependencies, presented, requestId, () =>
    recordChange(recorder, { event, ledger: [...uses, session.statement] }),
  )
  return { approval, session }
}

/** A token for a program. Throws `invalid_code`; `permission_denied` where the person may not make tokens (any more). */
export async function exchangeForToken(
  dependencies: MemberDependencies,
  presented: PresentedCode & { token_name: string },
  requestId: string,
): Promise<MadeToken> {
  const { clock, ledger, recorder } = dependencies
  const approval = await approvalOf(dependencies, presented, requestId)
  if (approval.tokenName !== presented.token_name) throw invalidCode()
  if (!mayGiveToken(approval.role)) {
    throw new Failure('permission_denied', { message: `The person who approved this lacks ${tokenPermission}` })
  }
  const principal = approver(approval)
  const event = await memberEvent(dependencies, {
    type: 'auth.code_exchanged',
    principal,
    requestId,
    details: { program: approval.clientId, gives: 'token' },
  })
  const uses = useCode(approval.codeHash, { kind: 'token', id: null }, clock.now())
  await onceOrReplay(dependencies, presented, requestId, () => recordChange(recorder, { event, ledger: uses }))
  // Bound to the person: the program's spend is theirs, and their teams see its events.
  const asked = { name: presented.token_name, purpose: 'general', bindings: { user_id: approval.userId } }
  const made = await createToken(dependencies, { principal, requestId }, createTokenBody.parse(asked))
  if (await noteGivenToken(ledger, approval.codeHash, made.token.id)) return made
  await revokeGiven(dependencies, made.token.id, requestId)
  throw invalidCode()
}

/** The approver as a caller: what is granted must be theirs to grant. */
const approver = ({ userId, role }: Approval): Principal => sessionPrincipal({ userId, role })

async function approvalOf(
  dependencies: MemberDependencies,
  presented: PresentedCode,
  requestId: string,
): Promise<Approval> {
  const found = await examineCode(dependencies.ledger, presented, dependencies.clock.now())
  if ('approval' in found) return found.approval
  await endGiven(dependencies, found.given, requestId)
  throw invalidCode()
}

/** Runs the change that uses a code up. If another use was faster, this one is its replay. */
async function onceOrReplay(
  dependencies: MemberDependencies,
  presented: PresentedCode,
  requestId: string,
  change: () => Promise<void>,
): Promise<void> {
  try {
    await change()
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    await approvalOf(dependencies, presented, requestId)
    throw invalidCode()
  }
}

async function endGiven(dependencies: MemberDependencies, given: Given, requestId: string): Promise<void> {
  const { ledger, clock, recorder } = dependencies
  const event = await memberEvent(dependencies, {
    type: 'auth.code_replayed',
    refused: 'invalid_code',
    principal: anonymous,
    requestId,
    details: { gave: given.kind, user_id: given.userId },
  })
  await recordChange(recorder, { event, ledger: noteReplay(given, clock.now()) })
  const tokenId = await givenTokenId(ledger, given.codeHash)
  if (tokenId !== null) await revokeGiven(dependencies, tokenId, requestId)
}

/** Without an actor: whoever presented the code again is unknown. */
async function revokeGiven(dependencies: MemberDependencies, tokenId: string, requestId: string): Promise<void> {
  const actor = { principal: { ...anonymous, name: 'system:code-replay', roles: ['owner' as const] }, requestId }
  await (await revokeToken(dependencies, actor, tokenId)).propagation()
}
