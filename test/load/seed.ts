/**
 * Puts tokens directly into the two databases of a data directory while nothing runs on it: copies of a token that is
 * there, with ids, names and hashes of their own. Nobody knows their secrets; they are there to be many.
 */
import { join } from 'node:path'
import { type Database, openDatabase } from '../../src/store/open.ts'

/**
 * Makes `count` tokens like the general token that was made last; their ids are older than all that is made later.
 * `present` is how many of them were made before.
 */
export async function seedTokens(dataDirectory: string, count: number, present = 0): Promise<void> {
  const state = await openDatabase(join(dataDirectory, 'state.db'), dataDirectory)
  const ledger = await openDatabase(join(dataDirectory, 'ledger.db'), dataDirectory)
  try {
    await copyLast(state, [present, count], { hash: 'lower(hex(randomblob(32)))' })
    await copyLast(ledger, [present, count], {
      name: "'seeded ' || n",
      token_prefix: "'gth_' || substr(hex(randomblob(4)), 1, 8)",
    })
  } finally {
    state.close()
    ledger.close()
  }
}

/** One recursive insert; the columns are those the table has, so that a migration does not break it. */
async function copyLast(
  database: Database,
  [present, count]: readonly [number, number],
  own: Readonly<Record<string, string>>,
): Promise<void> {
  const columns = (await database.read<{ name: string }>('select name from pragma_table_info(?)', ['tokens'])).map(
    ({ name }) => name,
  )
  const version7 = "printf('01900000-%04x-7000-8000-%012x', n >> 16, n)"
  const values = columns.map((name) => (name === 'id' ? version7 : (own[name] ?? `source.${name}`)))
  const from = "(select * from tokens where purpose = 'general' and roles like '%member%' order by id desc limit 1)"
  await database.write([
    {
      sql: `with recursive counted (n) as (select ? + 1 union all select n + 1 from counted where n < ?)
        insert into tokens (${columns.join(', ')}) select ${values.join(', ')} from counted, ${from} as source`,
      args: [present, present + count],
    },
  ])
}
