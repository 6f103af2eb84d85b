/**
 * Turns a program's code into what was approved: a session of the person, or a token in their name. A session can do
 * all that the person can; so a code that was approved for a named token never gives one.
 */
import { Failure } from '../failure.ts'
import { anonymous, type Principal } from '../tokens/principal.ts'
import { sessionPrincipal } from './authenticate-session.ts'
import type { MemberDependencies } from './dependencies.ts'
import { memberEvent, recordChange } from './member-event.ts'
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
import { type NewSession, startSession } from './session.ts'

/** How tokens are made and ended, as far as codes are concerned. */
export interface TokensForPrograms<Made extends { id: string }> {
  /** Makes a `general` token of this person, by their own permissions. */
  create(options: { principal: Principal; name: string; requestId: string }): Promise<Made>
  /** Revokes a token at once, whoever made it. */
  revoke(options: { tokenId: string; principal: Principal; requestId: string }): Promise<void>
}

export type CodeDependencies = MemberDependencies & { tokens: Pick<TokensForPrograms<{ id: string }>, 'revoke'> }

/** A session for a program. Throws `invalid_code`. */
export async function exchangeForSession(
  dependencies: CodeDependencies,
  presented: PresentedCode,
  requestId: string,
): Promise<{ approval: Approval; session: NewSession }> {
  const { clock, recorder } = dependencies
  const approval = await approvalOf(dependencies, presented, requestId)
  if (approval.tokenName !== null) throw invalidCode()
  const { userId, codeHash, clientId } = approval
  const session = startSession({ ...dependencies, userId, kind: 'program', program: clientId })
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
export async function exchangeForToken<Made extends { id: string }>(
  dependencies: CodeDependencies,
  tokens: TokensForPrograms<Made>,
  presented: PresentedCode & { token_name: string },
  requestId: string,
): Promise<Made> {
  const { clock, ledger, recorder } = dependencies
  const approval = await approvalOf(dependencies, presented, requestId)
  if (approval.tokenName !== null && approval.tokenName !== presented.token_name) throw invalidCode()
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
  const made = await tokens.create({ principal, name: presented.token_name, requestId })
  if (await noteGivenToken(ledger, approval.codeHash, made.id)) return made
  await tokens.revoke({ tokenId: made.id, principal, requestId })
  throw invalidCode()
}

/** The approver as a caller: what is given is theirs to give. */
const approver = ({ userId, role }: Approval): Principal => sessionPrincipal({ user_id: userId, role })

async function approvalOf(
  dependencies: CodeDependencies,
  presented: PresentedCode,
  requestId: string,
): Promise<Approval> {
  const found = await examineCode(dependencies.ledger, presented, dependencies.clock.now())
  if ('approval' in found) return found.approval
  await endGiven(dependencies, found.given, requestId)
  throw invalidCode()
}

/** Runs the change that uses a code up; where another use was faster, this one is its replay. */
async function onceOrReplay(
  dependencies: CodeDependencies,
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

async function endGiven(dependencies: CodeDependencies, given: Given, requestId: string): Promise<void> {
  const { ledger, clock, recorder, tokens } = dependencies
  const event = await memberEvent(dependencies, {
    type: 'auth.code_replayed',
    refused: 'invalid_code',
    principal: anonymous,
    requestId,
    details: { gave: given.kind, user_id: given.userId },
  })
  await recordChange(recorder, { event, ledger: noteReplay(given, clock.now()) })
  const tokenId = await givenTokenId(ledger, given.codeHash)
  if (tokenId !== null) await tokens.revoke({ tokenId, principal: anonymous, requestId })
}
