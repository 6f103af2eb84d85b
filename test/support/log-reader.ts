/** A ledger as the functions that read the event log take it, over whatever gives its rows. */
import type { Reader } from '../../src/store/open.ts'
import type { Row, Statement } from '../../src/store/statement.ts'

export function readerOf(rows: (sql: string, args: Statement['args']) => Promise<Row[]>): Reader {
  return {
    async read<Shape>(sql: string, args: Statement['args'] = []): Promise<Shape[]> {
      const found: unknown[] = await rows(sql, args)
      return found as Shape[]
    },
    readValues: async (sql, args = []) => (await rows(sql, args)).map(Object.values),
  }
}
