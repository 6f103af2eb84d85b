import type { Database } from '../../store/open.ts'

/** The policies that a token names, in order, with their display names; deleted ones are left out. */
export async function attachedPolicies(
  ledger: Database,
  ids: readonly string[],
): Promise<{ id: string; name: string }[]> {
  if (ids.length === 0) return []
  const named = await ledger.read<{ id: string; name: string }>(
    'select id, name from policies where deleted_at is null and id in (select value from json_each(?))',
    [JSON.stringify(ids)],
  )
  return ids.flatMap((id) => named.find((policy) => policy.id === id) ?? [])
}
