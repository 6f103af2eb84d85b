/** Any value in any column of any row of the log: what changes something is found, and nothing else is. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TestProof } from '../testing/proof.ts'

let proof: TestProof
beforeAll(async () => {
  proof = await TestProof.start()
  await proof.shipEvents(1, 4)
  await proof.ship(1, ['{"not":"an event"}'])
  await proof.shipEvents(2, 3)
  await proof.merge(4, 3)
  await proof.record(3)
  await proof.sign()
  await proof.shipEvents(1, 5)
  await proof.sign()
})
afterAll(() => proof.store.remove())

/** Readers detect by it that blocks have moved. Verification does not judge it. */
const notJudged = 'event_log.merges'

test('finds any change to any column of any row that a checkpoint covers', async () => {
  const { ledger } = proof.store
  const places: { table: string; column: string; id: number }[] = []
  for (const table of ['event_log', 'event_segments', 'event_blocks', 'segment_facets', 'segment_chains', 'chains']) {
    const columns = await ledger.read<{ name: string }>(`select name from pragma_table_info('${table}')`)
    const rows = await ledger.read<{ id: number }>(`select rowid as id from ${table}`)
    for (const { name: column } of columns) for (const { id } of rows) places.push({ table, column, id })
  }
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.integer({ min: 0, max: 20 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.uint8Array({ maxLength: 20 }),
    fc.constantFrom('control-plane', proof.worker(2), 2 ** 53, -1),
  )
  const tampering = fc.record({ place: fc.constantFrom(...places), value })
  await fc.assert(
    fc.asyncProperty(tampering, async ({ place: { table, column, id }, value: wanted }) => {
      const all = `select hex(quote(${column})) as shown from ${table} order by rowid`
      const before = JSON.stringify(await ledger.read(all))
      const copy = { sql: `create table kept as select rowid as kept_id, * from ${table}`, args: [] }
      const names = places.flatMap((place) => (place.table === table && place.id === id ? [place.column] : [])).join()
      const putBack = () =>
        ledger.write(
          [
            { sql: `delete from ${table}`, args: [] },
            { sql: `insert into ${table} (rowid, ${names}) select kept_id, ${names} from kept`, args: [] },
            { sql: 'drop table kept', args: [] },
          ],
          {},
        )
      try {
        const tamper = { sql: `update ${table} set ${column} = ? where rowid = ?`, args: [wanted, id] }
        await ledger.write([copy, tamper], {})
      } catch {
        // The table does not take this value.
        return
      }
      const changed = JSON.stringify(await ledger.read(all)) !== before
      const found = await proof.findings()
      await putBack()
      expect(found.length > 0).toBe(changed && `${table}.${column}` !== notJudged)
    }),
    { numRuns: 200 },
  )
  expect(await proof.findings()).toEqual([])
}, 120_000)
