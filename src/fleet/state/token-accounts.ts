/**
 * A policy or a consumer group that names a token is for that token's rotations and clones too. Those have other ids, but
 * they share the account of the token: a rotation keeps it, a clone draws on it.
 */
import type { Database } from 'bun:sqlite'

/** The account that each of these tokens was made with; the id of the token itself where the state does not know it. */
export const accountsOfTokens = (database: Database, ids: readonly string[]): string[] =>
  database
    .query<{ account: string }, [string]>(
      `select coalesce((select account_ids ->> '$[0]' from tokens where id = named.value), named.value) as account
        from json_each(?) named order by named.key`,
    )
    .all(JSON.stringify(ids))
    .map(({ account }) => account)
