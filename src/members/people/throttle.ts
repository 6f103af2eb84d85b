/**
 * Slows down guessing of passwords, for each account and for each address. The counts are in the ledger, so neither a
 * restart nor another control plane forgets them.
 *
 * An attempt is counted before its password is checked, by one statement that refuses while the key is blocked: a
 * thousand concurrent attempts count like sequential ones. The first few are free. Each further one blocks the key
 * twice as long as the one before, up to a bound, so that nobody can lock a person out for good. A success clears the
 * account, but only one attempt of the address: an attacker with an account of their own gains no guesses.
 */
import { eq, lt, lte, sql } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import type { Database } from '../../store/open.ts'
import { insert, query, remove, statement, update } from '../../store/query.ts'
import { signInAttempts } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'

export interface ThrottleRule {
  /** Attempts without a delay. */
  free: number
  firstDelayMilliseconds: number
  longestDelayMilliseconds: number
  /** After this long without an attempt everything is forgotten. */
  memoryMilliseconds: number
}

const minute = 60_000
const day = 24 * 60 * minute

/** At most 4 an hour in the end: below the 100 consecutive failures of NIST SP 800-63B section 3.2.2 for a day. */
export const accountRule: ThrottleRule = {
  free: 5,
  firstDelayMilliseconds: 1000,
  longestDelayMilliseconds: 15 * minute,
  memoryMilliseconds: day,
}

/** An address may stand for many people. */
export const addressRule: ThrottleRule = { ...accountRule, free: 30 }

/** The key of an account, known or not; the address itself is not kept. */
export const accountKey = (email: string): string => `account:${digest(email.trim().toLowerCase())}`

/** The key of a network address; an IPv6 one counts by its /64, which is what one subscriber has. */
export function addressKey(address: string): string {
  return `address:${digest(address.includes(':') ? ipv6Network(address) : address)}`
}

const digest = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')

function ipv6Network(address: string): string {
  const [plain = ''] = address.toLowerCase().split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  if (mapped?.[1] !== undefined) return mapped[1]
  const [head = '', tail = ''] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === '' ? [] : tail.split(':')
  const zeros = plain.includes('::')
    ? Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0')
    : []
  const network = [...groups, ...zeros, ...rest].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}

/** Counts an attempt. Throws `sign_in_throttled` with the whole seconds to wait while the key is blocked. */
export async function countAttempt(ledger: Database, key: string, rule: ThrottleRule, now: number): Promise<void> {
  const { free, firstDelayMilliseconds, longestDelayMilliseconds, memoryMilliseconds } = rule
  const { attempts, blockedUntil, lastAt } = signInAttempts
  const isForgotten = sql`${lastAt} < ${now - memoryMilliseconds}`
  const delay = sql`min(${longestDelayMilliseconds}, ${firstDelayMilliseconds} << min(${attempts} - ${free}, 30))`
  const counted = await ledger.writeAndRead([
    statement(
      insert(signInAttempts)
        .values({ key, attempts: 1, blockedUntil: 0, lastAt: now })
        .onConflictDoUpdate({
          target: signInAttempts.key,
          set: {
            attempts: sql`case when ${isForgotten} then 1 else ${attempts} + 1 end`,
            blockedUntil: sql`case when ${isForgotten} or ${attempts} + 1 <= ${free} then 0 else ${now} + ${delay} end`,
            lastAt: now,
          },
          setWhere: lte(blockedUntil, now),
        })
        .returning({ attempts }),
    ),
  ])
  if (counted.length > 0) return
  const row = await query(ledger).select().from(signInAttempts).where(eq(signInAttempts.key, key)).get()
  const wait = Math.max(1000, (row?.blockedUntil ?? now) - now)
  throw new Failure('sign_in_throttled', { retryAfter: Math.ceil(wait / 1000) })
}

/** After a success: forgets the account's attempts and takes this one back from the address. */
export async function forgiveAttempt(
  ledger: Database,
  keys: { account: string | null; address: string },
): Promise<void> {
  const ofAccount = keys.account === null ? [] : [forgetAttempts(keys.account)]
  await ledger.write([...ofAccount, takeAttemptBack(keys.address)])
}

/** After a success: forgets all attempts. */
export const forgetAttempts = (key: string): Statement =>
  statement(remove(signInAttempts).where(eq(signInAttempts.key, key)))

/** After a success: takes this attempt back, and none of those before it. */
export const takeAttemptBack = (key: string): Statement =>
  statement(
    update(signInAttempts)
      .set({ attempts: sql`max(${signInAttempts.attempts} - 1, 0)`, blockedUntil: 0 })
      .where(eq(signInAttempts.key, key)),
  )

/** Removes what no rule remembers any more. */
export async function sweepAttempts(ledger: Database, now: number): Promise<void> {
  await ledger.write([statement(remove(signInAttempts).where(lt(signInAttempts.lastAt, now - day)))])
}
