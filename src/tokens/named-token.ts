/**
 * Whether a consumer group or a policy names a token: then it limits the token although the token does not name it.
 *
 * SQL text: it joins lists that are JSON within rows, for which the builder has no words.
 */
import { type SQL, sql } from 'drizzle-orm'

/**
 * A condition on the state: a consumer group or a policy names this token, one it was rotated from, or one whose account
 * it draws on (`fleet/state/token-accounts.ts` has the same rule for gateways).
 */
export const isNamed = (tokenId: string): SQL => sql`exists (
    select 1 from (
      select members ->> '$.tokens' as ids from consumer_groups where deleted = 0
      union all select targets ->> '$.tokens' from policies where deleted = 0
    ) records, json_each(records.ids) named left join tokens other on other.id = named.value
    where coalesce(other.account_ids ->> '$[0]', named.value) in (
      select value from tokens self, json_each(self.account_ids) where self.id = ${tokenId}))`
