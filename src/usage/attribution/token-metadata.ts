/**
 * Brings the metadata of tokens that a dimension reads into the state, and takes it away (store/schema/token-metadata.ts).
 *
 * SQL text: members of JSON objects.
 */
import { inArray, sql } from 'drizzle-orm'
import { changeVersion } from '../../events/recorder.ts'
import type { Database } from '../../store/open.ts'
import { newStateVersion, query, statement, update } from '../../store/query.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import { keptKeys } from '../../store/schema/token-metadata.ts'
import type { Statement } from '../../store/statement.ts'

const tokensAtOnce = 100

/**
 * Statements behind the change of a dimension that reads one of these keys: its entries come into the state, or leave
 * it. A token that is made while the dimension is declared has its entry from its next change on.
 */
export async function keepMetadataOf(ledger: Database, keys: readonly string[]) {
  const state: Statement[] = []
  const followed: Statement[] = []
  if (keys.length === 0) return { state, ledger: followed }
  const { id, metadata } = ledgerTokens
  const rows = await query(ledger)
    .select({ id, metadata })
    .from(ledgerTokens)
    .where(
      sql`exists (select 1 from json_each(${metadata}) where key in (select value from json_each(${JSON.stringify(keys)})))`,
    )
  for (let from = 0; from < rows.length; from += tokensAtOnce) {
    const some = rows.slice(from, from + tokensAtOnce)
    const ids = some.map((row) => row.id)
    const all = JSON.stringify(Object.fromEntries(some.map((row) => [row.id, row.metadata])))
    const kept = sql<Readonly<Record<string, string>>>`(select json_group_object(entry.key, entry.value)
      from json_each(json_extract(${all}, '$."' || ${stateTokens.id} || '"')) as entry where entry.key in ${keptKeys})`
    const changed = update(stateTokens).set({ metadata: kept, version: newStateVersion })
    state.push(statement(changed.where(inArray(stateTokens.id, ids))))
    followed.push(statement(update(ledgerTokens).set({ version: changeVersion }).where(inArray(id, ids))))
  }
  return { state, ledger: followed }
}
