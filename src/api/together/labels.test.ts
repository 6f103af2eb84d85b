import { afterAll, beforeAll, expect, test } from 'bun:test'
import { z } from 'zod'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import type { Statement } from '../../store/statement.ts'
import { labelRoutes } from './labels.ts'

const asked: { sql: string; args: Statement['args'] }[] = []
let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, ({ ledger }) => {
    const readValues: typeof ledger.readValues = (sql, args = []) => {
      if (sql.includes('record_labels')) asked.push({ sql, args })
      return ledger.readValues(sql, args)
    }
    return [labelRoutes({ ...ledger, readValues })]
  })
  await plane.store.ledger.write(
    rows.map(([path, id, label]) => ({ sql: 'insert into record_labels values (?, ?, ?)', args: [path, id, label] })),
  )
})
afterAll(() => plane.remove())

const rows: [path: string, id: string, label: string][] = ['/v1/catalog/models', '/v1/teams', '/v1/users'].flatMap(
  (path) =>
    Array.from({ length: 90 }, (_, index): [string, string, string] => [
      path,
      `a name ${index} / 'with' blanks`,
      index % 3 === 0 ? 'a' : 'b',
    ]),
)
const pageSchema = z.object({
  labels: z.array(z.object({ path: z.string(), id: z.string(), label: z.string() })),
  next_cursor: z.string().nullable(),
})

async function all(filter: string): Promise<string[][]> {
  const found: string[][] = []
  for (let cursor = ''; ; ) {
    const path = `/v1/labels?limit=40${filter}${cursor === '' ? '' : `&cursor=${cursor}`}`
    const { labels, next_cursor } = pageSchema.parse((await plane.call('GET', path, { token: plane.adminToken })).json)
    found.push(...labels.map(({ path: of, id, label }) => [of, id, label]))
    if (next_cursor === null) return found
    cursor = next_cursor
  }
}

test('lists every label once, page by page, of all or of one label', async () => {
  expect((await all('')).toSorted()).toEqual(rows.toSorted())
  expect((await all('&label=a')).toSorted()).toEqual(rows.filter(([, , label]) => label === 'a').toSorted())
})

test('finds each page by an index, and sorts nothing', async () => {
  asked.length = 0
  await all('')
  await all('&label=b')
  expect(asked.length).toBeGreaterThan(8)
  const plans = await Promise.all(
    asked.map(({ sql, args }) => plane.store.ledger.read<{ detail: string }>(`explain query plan ${sql}`, args)),
  )
  for (const detail of plans.flat().map((row) => row.detail)) {
    expect(detail).toMatch(/^SEARCH record_labels USING (COVERING )?INDEX .*path,record_id\)>/)
  }
})
