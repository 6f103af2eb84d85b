import { and, isNull } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { isOneOf, query } from '../../store/query.ts'
import { policies } from '../../store/schema/ledger/policies.ts'

/** The policies that a token names, in order, with their display names; deleted ones are left out. */
export async function attachedPolicies(
  ledger: Database,
  ids: readonly string[],
): Promise<{ id: string; name: string }[]> {
  if (ids.length === 0) return []
  const { id, name, deletedAt } = policies
  const named = await query(ledger)
    .select({ id, name })
    .from(policies)
    .where(and(isNull(deletedAt), isOneOf(id, ids)))
  return ids.flatMap((policyId) => named.find((policy) => policy.id === policyId) ?? [])
}
