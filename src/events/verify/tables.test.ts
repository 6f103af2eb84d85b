/**
 * Tampering by table: every column of every table that the proof stands on, altered in one row, and every row deleted,
 * doubled or exchanged with another. What is not told by design is listed with its reason; a column that is added has to
 * be found, or be listed.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Database } from '../../store/open.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'

let proof: TestProof

/** Chains with floors, and four checkpoints, the last of which covers all there is. */
beforeAll(async () => {
  proof = await TestProof.start()
  await proof.shipEvents(1, 4)
  await proof.record(2)
  await proof.sign()
  proof.now += (retentionDays - 1) * 86_400_000
  await proof.shipEvents(1, 3)
  await proof.shipEvents(2, 3)
  await proof.record(2)
  await proof.sign()
  proof.now += 2 * 86_400_000
  await proof.retain()
  for (let round = 0; round < 2; round++) {
    await proof.shipEvents(1, 1)
    await proof.sign()
  }
})
afterAll(() => proof.store.remove())

const untold: Readonly<Record<string, string>> = {
  'ledger.event_log.id': 'is held to 1 by the table',
  'ledger.event_log.merges': 'tells readers that blocks have moved, and nothing is judged by it',
  'ledger.checkpoint_keys.created_at': 'says when a key was first seen, and nothing is judged by it',
  'state.checkpoints.id': 'is held to 1 by the table',
  'state.checkpoints.version': 'is by which replicas copy the row; the row itself is signed',
  'state.checkpoints.deleted': 'is of replicas alike',
}
const tables = [
  ...[
    ...['event_log', 'event_segments', 'event_blocks', 'segment_facets', 'segment_chains'],
    ...['chains', 'checkpoints', 'chain_floors', 'checkpoint_keys'],
  ].map((table) => ['ledger', table] as const),
  ['state', 'checkpoints'] as const,
]

type Value = string | number | null | Uint8Array
type Row = Record<string, Value>

for (const [database, table] of tables) {
  const open = (): Database => proof.store[database]
  const rowsOf = async () => {
    // Without columns that are read from others.
    const columns = await open().read<{ name: string }>(`select name from pragma_table_info('${table}')`)
    const rows = await open().read<Record<string, Value | ArrayBuffer>>(
      `select ${columns.map(({ name }) => name).join()} from ${table}`,
    )
    return rows.map((row): Row => {
      const bytes = (value: Value | ArrayBuffer) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value)
      return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, bytes(value)]))
    })
  }
  /** In one transaction; a row that the table does not take leaves it as it was. */
  const putBack = (rows: readonly Row[]) =>
    open().write([{ sql: `delete from ${table}`, args: [] }, ...rows.map(inserted)], {})
  const inserted = (row: Row) => ({
    sql: `insert into ${table} (${Object.keys(row).join()}) values (${Object.keys(row).fill('?').join()})`,
    args: Object.values(row),
  })
  const other = (value: Value | undefined): Value => {
    if (value instanceof Uint8Array) return value.with(value.length >> 1, 255 - (value[value.length >> 1] ?? 0))
    return typeof value === 'number' ? value + 1000 : `${value ?? ''}x`
  }

  test(`finds any altered column of any row in ${database}.${table}`, async () => {
    const rows = await rowsOf()
    const silent = new Set<string>()
    for (const column of Object.keys(rows[0] ?? {})) {
      for (const row of rows.slice(0, 3)) {
        const changed = { ...row, [column]: other(row[column]) }
        try {
          await putBack(rows.map((each) => (each === row ? changed : each)))
        } catch {
          // The table does not take it.
          silent.add(`${database}.${table}.${column}`)
          continue
        }
        if ((await proof.findings()).length === 0) silent.add(`${database}.${table}.${column}`)
      }
    }
    await putBack(rows)
    expect([...silent].filter((name) => untold[name] === undefined)).toEqual([])
    expect(await proof.findings()).toEqual([])
  })

  test(`finds any deleted row in ${database}.${table}, and the deletion of all`, async () => {
    const rows = await rowsOf()
    expect(rows.length).toBeGreaterThan(0)
    for (const gone of [...rows.map((row) => [row]), rows]) {
      await putBack(rows.filter((row) => !gone.includes(row)))
      expect(await proof.findings()).not.toEqual([])
    }
    await putBack(rows)
  })

  test(`finds two swapped values in ${database}.${table}`, async () => {
    const rows = await rowsOf()
    const [first, second] = [rows.at(-2), rows.at(-1)]
    if (first === undefined || second === undefined) return
    const name = Object.keys(first).find((column) => first[column] !== second[column]) ?? ''
    const changed = [
      { ...second, [name]: first[name] ?? null },
      { ...first, [name]: second[name] ?? null },
    ]
    const shown = (pair: readonly Row[]) => pair.map((row) => JSON.stringify(row)).toSorted()
    // Rows that differ in this column only are the same two afterwards.
    if (Bun.deepEquals(shown(changed), shown([first, second]))) return
    await putBack([...rows.slice(0, -2), ...changed])
    expect(await proof.findings()).not.toEqual([])
    await putBack(rows)
  })
}

test('finds the deletion of the whole proof at once', async () => {
  for (const table of ['checkpoints', 'chain_floors']) await proof.run(`delete from ${table}`)
  await proof.store.state.write([{ sql: 'update checkpoints set number = 0, version = 0', args: [] }])
  expect(await proof.findings()).toContain('checkpoint.missing')
})
