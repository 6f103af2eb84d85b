/**
 * Slows down guessing of passwords, for each account and for each address. The counts are in the ledger, so neither a
 * restart nor another control plane forgets them.
 *
 * An attempt is counted before its password is checked, by one statement that refuses while the key is blocked: a
 * thousand concurrent attempts count like sequential ones. The first few are free. Each further one blocks the key
 * twice as long as the one before, up to a bound, so that nobody can lock a person out for good. A success clears the
 * account, but only one attempt of the address: an attacker with an account of their own gains no guesses.
 */
import { Failure } from '../../failure.ts'
import type { Database } from '../../store/open.ts'

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
  const forgottenBefore = now - memoryMilliseconds
  const sql = `insert into sign_in_attempts (key, attempts, blocked_until, last_at) values (?1, 1, 0, ?2)
     on conflict (key) do update set
       attempts = case when last_at < ?3 then 1 else attempts + 1 end,
       blocked_until = case
         when last_at < ?3 or attempts + 1 <= ?4 then 0
         else ?2 + min(?6, ?5 << min(attempts - ?4, 30))
       end,
       last_at = ?2
     where blocked_until <= ?2
     returning attempts`
  const args = [key, now, forgottenBefore, free, firstDelayMilliseconds, longestDelayMilliseconds]
  const counted = await ledger.writeAndRead([{ sql, args }])
  if (counted.length > 0) return
  const [row] = await ledger.read<{ blocked_until: number }>(
    'select blocked_until from sign_in_attempts where key = ?',
    [key],
  )
  const wait = Math.max(1000, (row?.blocked_until ?? now) - now)
  throw new Failure('sign_in_throttled', { retryAfter: Math.ceil(wait / 1000) })
}

/** After a success: forgets the account's attempts and takes this one back from the address. */
export async function forgiveAttempt(ledger: Database, keys: { account: string; address: string }): Promise<void> {
  await ledger.write([
    { sql: 'delete from sign_in_attempts where key = ?', args: [keys.account] },
    {
      sql: 'update sign_in_attempts set attempts = max(attempts - 1, 0), blocked_until = 0 where key = ?',
      args: [keys.address],
    },
  ])
}

/** Removes what no rule remembers any more. */
export async function sweepAttempts(ledger: Database, now: number): Promise<void> {
  await ledger.write([{ sql: 'delete from sign_in_attempts where last_at < ?', args: [now - day] }])
}
