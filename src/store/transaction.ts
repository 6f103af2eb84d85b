/**
 * Several changes together or none, although each is made by code that writes as it goes. While `collecting` runs, what
 * it writes is kept in a list and not written; what it reads is read in a transaction that first runs the list and is
 * undone. No transaction is held across an await, so others write meanwhile: the guards of the changes decide when they
 * are made (events/together.ts).
 *
 * A file's connection keeps the transaction for reads that follow one another. On a server each read costs as much as
 * all that was collected, so a list of n changes costs the square of n.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database } from './open.ts'
import type { Row, Statement, Values } from './statement.ts'

/** What was collected for each database. */
export interface Collected {
  readonly state: Statement[]
  readonly ledger: Statement[]
  /** Those of the ledger that belong to no change. */
  readonly beside: Statement[]
  /** False once the work has ended: a timer that it started writes as always. */
  isOpen: boolean
}

const running = new AsyncLocalStorage<Collected>()

/** What the running work collects; null where nothing is collected. */
export function collected(): Collected | null {
  const found = running.getStore()
  return found?.isOpen === true ? found : null
}

/** Runs work that neither writes to the list nor sees it, such as finding out who calls. */
export const uncollected = <Result>(work: () => Promise<Result>): Promise<Result> => running.exit(work)

export const emptyList = (): Collected => ({ state: [], ledger: [], beside: [], isOpen: true })

/** Runs work whose writes are collected in a list. */
export async function collecting<Result>(work: () => Promise<Result>, list: Collected): Promise<Result> {
  try {
    return await running.run(list, work)
  } finally {
    list.isOpen = false
  }
}

/** A database that sees what is collected. A change is collected by the recorder; a write of the ledger alone here. */
export function withCollected(database: Database, name: 'state' | 'ledger'): Database {
  const read = async (sql: string, args: Statement['args']) => {
    const list = collected()
    return list === null || list[name].length === 0 ? null : await database.readAfter(list[name], { sql, args })
  }
  const collect = async (statements: readonly Statement[]) => {
    const list = collected()
    const last = statements.at(-1)
    if (list === null || last === undefined) return null
    if (name === 'state') throw new Error('The state is written by changes only')
    const found = await database.readAfter([...list.ledger, ...statements.slice(0, -1)], last)
    list.ledger.push(...statements)
    list.beside.push(...statements)
    return found
  }
  return {
    ...database,
    async read<Shape>(sql: string, args: Statement['args'] = []) {
      const found = await read(sql, args)
      return found === null ? await database.read<Shape>(sql, args) : (objects(found) as Shape[])
    },
    async readValues(sql, args = []) {
      return (await read(sql, args))?.rows ?? (await database.readValues(sql, args))
    },
    async write(statements, patient) {
      if ((await collect(statements)) === null) await database.write(statements, patient)
    },
    async writeAndRead<Shape>(statements: readonly Statement[]) {
      const found = await collect(statements)
      return found === null ? await database.writeAndRead<Shape>(statements) : (objects(found) as Shape[])
    },
  }
}

export const objects = ({ columns, rows }: Values): Row[] =>
  rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])))
