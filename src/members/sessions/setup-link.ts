/**
 * The one-time link with which an owner signs in for the first time. Its secret is in the fragment, which browsers do
 * not send, so it reaches no log. It lives 15 minutes and works once.
 */
import { Failure } from '../../failure.ts'
import { hashSecret, makeSecret, secretKind } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

const lifetimeMilliseconds = 15 * 60_000

export interface SetupLink {
  url: string
  expiresAt: number
}

interface SetupLinkOptions {
  ledger: Database
  userId: string
  consoleUrl: string
  clock: Clock
  randomBytes(size: number): Uint8Array
}

/**
 * Makes a link for a person, beside earlier ones: a restarted control plane leaves a link that was already shown
 * valid. The first that is used ends them all.
 */
export async function makeSetupLink({ ledger, ...options }: SetupLinkOptions): Promise<SetupLink> {
  const { link, insert } = newSetupLink(options)
  await ledger.write([insert])
  return link
}

/** A link, and the statement that makes it. */
export function newSetupLink({ userId, consoleUrl, clock, randomBytes }: Omit<SetupLinkOptions, 'ledger'>) {
  const secret = makeSecret('oauthCode', randomBytes)
  const expiresAt = clock.now() + lifetimeMilliseconds
  const insert: Statement = {
    sql: 'insert into setup_links (hash, user_id, expires_at) values (?, ?, ?)',
    args: [hashSecret(secret), userId, expiresAt],
  }
  const link: SetupLink = { url: `${consoleUrl}/setup#${secret}`, expiresAt }
  return { link, insert }
}

/** Ends all links of a person, because another one replaces them or a password was set. */
export const endSetupLinks = (userId: string): Statement => ({
  sql: 'delete from setup_links where user_id = ?',
  args: [userId],
})

/**
 * The first owner, while no owner can sign in by password; each start makes a link for this person. Null after that.
 */
export async function ownerAwaitingSetup(ledger: Database): Promise<string | null> {
  const [row] = await ledger.read<{ id: string }>(
    `select id from users where role = 'owner' and status = 'active'
       and not exists (select 1 from users where role = 'owner' and status = 'active' and password_hash is not null)
     order by id limit 1`,
  )
  return row?.id ?? null
}

/** The person of a link. Throws `invalid_setup_link`. Does not use it up. */
export async function setupLinkUser(ledger: Database, secret: string, now: number): Promise<string> {
  const failure = new Failure('invalid_setup_link', { param: 'secret' })
  if (secretKind(secret) !== 'oauthCode') throw failure
  const [row] = await ledger.read<{ user_id: string }>(
    'select user_id from setup_links where hash = ? and used_at is null and expires_at > ?',
    [hashSecret(secret), now],
  )
  if (row === undefined) throw failure
  return row.user_id
}

/** Makes the transaction fail if the link is no longer valid; setting the password then ends it. */
export const requireSetupLink = (secret: string, now: number): Statement => ({
  sql: `insert into guards (holds) select 0 where not exists
    (select 1 from setup_links where hash = ? and used_at is null and expires_at > ?)`,
  args: [hashSecret(secret), now],
})
