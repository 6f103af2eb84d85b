import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../testing/store.ts'
import { requireSoundText } from './damaged-text.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

const run = (sql: string) => store.ledger.write([{ sql, args: [] }])

test('names the table, the column and the row of bytes that are no text, however far down', async () => {
  await run(`with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)
    insert into teams (id, name, created_at) select printf('team-%d', i), 'größe ' || i, i from n`)
  await requireSoundText(store.ledger, 'ledger')
  await run("update teams set name = cast(x'6761ff' as text) where id = 'team-1100'")
  const [row] = await store.ledger.read<{ id: number }>("select rowid as id from teams where id = 'team-1100'")
  await expect(requireSoundText(store.ledger, 'ledger')).rejects.toMatchObject({
    code: 'data_damaged',
    message: expect.stringContaining(
      `table teams of the ledger database holds bytes that are no text, in name of row ${row?.id}:`,
    ),
  })
  await run("update teams set name = 'mended' where id = 'team-1100'")
  await requireSoundText(store.ledger, 'ledger')
})

test('does not check columns that are only read as bytes', async () => {
  await run(
    "insert into chains (chain, seq, digest, updated_at) values (cast(x'ff' as text), 1, cast(x'ff' as text), 1)",
  )
  await requireSoundText(store.ledger, 'ledger')
})
