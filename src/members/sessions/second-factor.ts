/** The second factor of a local account: what of it is stored, and how a code is checked and used up. */
import { and, eq, lt, sql } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import { guard, hasRow, statement, update } from '../../store/query.ts'
import { users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { accountKey, accountRule, countAttempt, forgetAttempts } from '../people/throttle.ts'
import { stepOfCode } from '../people/totp.ts'
import type { UserRow } from '../people/user.ts'

type Keys = Pick<MemberDependencies, 'masterKey' | 'clock'>
type Holder = Pick<UserRow, 'id' | 'totpSecret' | 'totpSince' | 'totpStep'>

/** Keeps a new secret, which does not count before a code has confirmed it. */
export const setSecret = ({ masterKey }: Keys, userId: string, secret: Uint8Array): Statement =>
  statement(
    update(users)
      .set({
        totpSecret: masterKey.seal('second_factor', userId, Buffer.from(secret).toString('base64')),
        totpSince: null,
        totpStep: 0,
      })
      .where(eq(users.id, userId)),
  )

export const removeSecret = (userId: string): Statement =>
  statement(update(users).set({ totpSecret: null, totpSince: null, totpStep: 0 }).where(eq(users.id, userId)))

/** Whether signing in by password needs a code. */
export const hasSecondFactor = ({ totpSince }: Pick<UserRow, 'totpSince'>): boolean => totpSince !== null

/** Uses a code up: statements that fail where another call was faster. Throws `invalid_second_factor`. */
export function useSecondFactor(
  { masterKey, clock }: Keys,
  { id, totpSecret, totpStep }: Holder,
  code: string,
  confirms = false,
): Statement[] {
  const now = clock.now()
  const secret = totpSecret === null ? null : Buffer.from(masterKey.open('second_factor', id, totpSecret), 'base64')
  const step = secret === null ? null : stepOfCode(secret, code.replaceAll(' ', ''), { now, after: totpStep })
  if (step === null) throw new Failure('invalid_second_factor', { param: 'code' })
  const unused = and(eq(users.id, id), lt(users.totpStep, step), sql`${users.totpSecret} = ${totpSecret}`)
  return [
    guard(hasRow(users, unused)),
    statement(
      update(users)
        .set({ totpStep: step, ...(confirms ? { totpSince: now } : {}) })
        .where(eq(users.id, id)),
    ),
  ]
}

/**
 * As `useSecondFactor`, where no password was guessed whose attempts are counted: guesses of codes are counted by
 * themselves. Throws `sign_in_throttled` too.
 */
export async function proveSecondFactor(
  { ledger, ...keys }: Keys & Pick<MemberDependencies, 'ledger'>,
  user: Holder,
  code: string,
): Promise<Statement[]> {
  const key = accountKey(`second factor of ${user.id}`)
  await countAttempt(ledger, key, accountRule, keys.clock.now())
  return [...useSecondFactor(keys, user, code), forgetAttempts(key)]
}

/** What signing in by password needs besides: nothing, or the use of a code. Throws `second_factor_required`. */
export function secondFactorOf(keys: Keys, user: UserRow, code: string | undefined): Statement[] {
  if (!hasSecondFactor(user)) return []
  if (code === undefined || code === '') throw new Failure('second_factor_required', { param: 'code' })
  return useSecondFactor(keys, user, code)
}
