/**
 * What the records behind ids are called.
 *
 * SQL text: the names of ids, by a list of them.
 */
import type { Database } from '../../store/open.ts'

const tables: Readonly<Record<string, string>> = {
  team: 'select id, name from teams',
  token: 'select id, name from tokens',
  user: 'select id, email as name from users',
  gateway: 'select id, name from gateway_names',
}

/** The names of teams, tokens, people or gateways by their ids; of anything else none. */
export async function namesOf(ledger: Database, kind: string, ids: readonly string[]): Promise<Map<string, string>> {
  const table = tables[kind]
  if (table === undefined || ids.length === 0) return new Map()
  const rows = await ledger.read<{ id: string; name: string }>(
    `${table} where id in (select value from json_each(?))`,
    [JSON.stringify([...new Set(ids)])],
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}
