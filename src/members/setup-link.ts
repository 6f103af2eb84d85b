/**
 * The one-time link by which an owner signs in for the first time: its secret stands in the fragment, which browsers do
 * not send, so that it reaches no log. It lives 15 minutes and works once.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database, Statement } from '../store/open.ts'
import { hashSecret, makeSecret, secretKind } from '../tokens/secret.ts'

const lifetimeMilliseconds = 15 * 60_000

/** Makes a link for a person; those made before for them no longer work. */
export async function makeSetupLink(options: {
  ledger: Database
  userId: string
  consoleUrl: string
  clock: Clock
  randomBytes(size: number): Uint8Array
}): Promise<string> {
  const { ledger, userId, consoleUrl, clock, randomBytes } = options
  const secret = makeSecret('oauthCode', randomBytes)
  await ledger.write([
    { sql: 'delete from setup_links where user_id = ?', args: [userId] },
    {
      sql: 'insert into setup_links (hash, user_id, expires_at) values (?, ?, ?)',
      args: [hashSecret(secret), userId, clock.now() + lifetimeMilliseconds],
    },
  ])
  return `${consoleUrl}/setup#${secret}`
}

/** The first owner, while no owner can sign in by password yet: whom each start makes a link for. Null after that. */
export async function ownerAwaitingSetup(ledger: Database): Promise<string | null> {
  const [row] = await ledger.read<{ id: string }>(
    `select id from users where role = 'owner' and status = 'active'
       and not exists (select 1 from users where role = 'owner' and status = 'active' and password_hash is not null)
     order by id limit 1`,
  )
  return row?.id ?? null
}

/** Whom a link is for. Throws `invalid_setup_link`. Looking does not use it up. */
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

/** Uses a link up; the transaction fails where somebody else was first. */
export const useSetupLink = (secret: string, now: number): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists
      (select 1 from setup_links where hash = ? and used_at is null and expires_at > ?)`,
    args: [hashSecret(secret), now],
  },
  { sql: 'update setup_links set used_at = ? where hash = ?', args: [now, hashSecret(secret)] },
]
