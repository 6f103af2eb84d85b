/**
 * Puts rows directly into the two databases of a data directory while nothing runs on it: copies of a row that is
 * there, with ids of their own. They are there to be many; nobody knows the secrets of such tokens.
 */
import { join } from 'node:path'
import { type Database, openDatabase } from '../../../src/store/open.ts'

/** So many copies, after those that were made before. */
interface Numbered {
  count: number
  present?: number
}

/** The rows of one table: which one is copied, and the columns that differ in each copy `n` of it, as SQL. */
interface Copies extends Numbered {
  table: string
  source: string
  own: Readonly<Record<string, string>>
}

/** An id that is older than all that are made later. */
const version7 = "printf('01900000-%04x-7000-8000-%012x', n >> 16, n)"

/** Makes tokens like the general token that was made last. */
export async function seedTokens(dataDirectory: string, numbered: Numbered): Promise<void> {
  const source = "purpose = 'general' and roles like '%member%'"
  const tokens = { ...numbered, table: 'tokens', source }
  await copy(dataDirectory, 'state', { ...tokens, own: { id: version7, hash: 'lower(hex(randomblob(32)))' } })
  const prefix = "'gth_' || substr(hex(randomblob(4)), 1, 8)"
  await copy(dataDirectory, 'ledger', {
    ...tokens,
    own: { id: version7, name: "'seeded ' || n", token_prefix: prefix },
  })
}

/** Makes policies like the one that was made last, each with a condition of its own that does not hold. */
export async function seedPolicies(dataDirectory: string, numbered: Numbered): Promise<void> {
  const policies = { ...numbered, table: 'policies', source: 'true' }
  const condition = `'request.model == "none-' || n || '"'`
  await copy(dataDirectory, 'state', { ...policies, own: { id: version7, position: 'source.position + n', condition } })
  await copy(dataDirectory, 'ledger', { ...policies, own: { id: version7, name: "'seeded ' || n" } })
}

/** Makes models like the one whose id comes last, named after it and a number. */
export const seedModels = (dataDirectory: string, numbered: Numbered): Promise<void> =>
  copy(dataDirectory, 'state', { ...numbered, table: 'models', source: 'true', own: { id: "'a-seeded-' || n" } })

/** One recursive insert; the columns are those the table has, so that a migration does not break it. */
async function copy(dataDirectory: string, name: 'state' | 'ledger', copies: Copies): Promise<void> {
  const { table, source, own, count, present = 0 } = copies
  const database: Database = await openDatabase(join(dataDirectory, `${name}.db`), dataDirectory)
  try {
    const found = await database.read<{ name: string }>('select name from pragma_table_info(?)', [table])
    const columns = found.map((column) => column.name)
    const values = columns.map((column) => own[column] ?? `source.${column}`)
    const from = `(select * from ${table} where ${source} order by id desc limit 1)`
    await database.write([
      {
        sql: `with recursive counted (n) as (select ? + 1 union all select n + 1 from counted where n < ?)
          insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from counted, ${from} as source`,
        args: [present, present + count],
      },
    ])
    // As in an installation that came to them one by one: else each start would read this one transaction again.
    await database.read('pragma wal_checkpoint(truncate)')
  } finally {
    database.close()
  }
}
