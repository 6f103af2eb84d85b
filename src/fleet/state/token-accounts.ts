/**
 * A policy or a consumer group that names a token also covers that token's rotations and clones. They have other ids
 * but share the account: a rotation keeps it, and a clone draws on it.
 */
import type { Database } from 'bun:sqlite'

/** The account that each of these tokens was made with; the token's own id if the state does not know it. */
export const accountsOfTokens = (database: Database, ids: readonly string[]): string[] =>
  database
    .query<{ account: string }, [string]>(
      `select coalesce((select account_ids ->> '$[0]' from tokens where id = named.value), named.value) as account
        from json_each(?) named order by named.key`,
    )
    .all(JSON.stringify(ids))
    .map(({ account }) => account)
