/** The organization, which the first start made, and the names of its tokens. */
import type { Reader } from '../store/open.ts'
import { query } from '../store/query.ts'
import { organizations } from '../store/schema/ledger/people.ts'

/** Its id, or null where the first start has not made it yet. */
export const organizationId = async (ledger: Reader): Promise<string | null> =>
  (await query(ledger).select({ id: organizations.id }).from(organizations).get())?.id ?? null

/** The name that messages and records know a token by. */
export const tokenResourceName = (organizationId: string, id: string): string =>
  `vrn:gatehouse:${organizationId}:token/${id}`
