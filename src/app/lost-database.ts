/**
 * Checks before an installation is opened that neither of its databases was emptied while the other is in use. A new
 * state beside a ledger with tokens would call each of them unknown, and a new ledger would count their limits from
 * zero.
 */
import { Failure } from '../failure.ts'
import type { Reader } from '../store/open.ts'

/** Throws `conflict`, with a text for the operator, if one database is empty and the other has been in use. */
export async function requireBoth({ state, ledger }: { state: Reader; ledger: Reader }): Promise<void> {
  // Checks the one in use first: another control plane may be making both at this moment, in this order.
  const ledgerUsed = await hasRows(ledger, 'known_state_head', 'version > 0')
  const stateUsed = await hasRows(state, 'state_head', 'version > 0')
  if (ledgerUsed && !(await hasTable(state, 'state_head'))) throw lost('state', 'ledger')
  if (stateUsed && !(await hasTable(ledger, 'organizations'))) throw lost('ledger', 'state')
}

const lost = (empty: string, used: string): Failure =>
  new Failure('conflict', {
    message: `The ${empty} database is empty, but the ${used} database has been in use with another one: restore the ${empty} database from its backup and start again. To begin an installation anew, empty both`,
  })

const hasTable = async (database: Reader, name: string): Promise<boolean> =>
  (await database.read("select 1 from sqlite_master where type = 'table' and name = ?", [name])).length > 0

const hasRows = async (database: Reader, table: string, condition: string): Promise<boolean> =>
  (await hasTable(database, table)) &&
  (await database.read(`select 1 from ${table} where ${condition} limit 1`)).length > 0
