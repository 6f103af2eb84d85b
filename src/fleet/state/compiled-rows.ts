/**
 * What a gateway has compiled from the rows of one table of the state. A change compiles only the changed rows: each
 * row, including deleted ones until all gateways have seen them, has the version that last changed it.
 */
import type { Database } from 'bun:sqlite'

interface StateRow {
  id: string
  version: number
  deleted: number
}

export class CompiledRows<Row, Compiled> {
  readonly #table: string
  readonly #columns: string
  readonly #compile: (row: Row, database: Database) => Compiled
  readonly #compiled = new Map<string, Compiled>()
  #newest = -1

  /** `columns` are what `compile` reads of a row, besides its `id`, `version` and `deleted`. */
  constructor(table: string, columns: readonly string[], compile: (row: Row, database: Database) => Compiled) {
    this.#table = table
    this.#columns = [...new Set(['id', 'version', 'deleted', ...columns])].join(', ')
    this.#compile = compile
  }

  /** In no order. */
  values(): Compiled[] {
    return [...this.#compiled.values()]
  }

  /**
   * Call inside a read transaction. `anew`: the file or its history is another one. Returns whether anything has
   * changed. Throws what `compile` throws; then the next call reads the same rows again.
   */
  read(database: Database, anew: boolean): boolean {
    if (anew) {
      this.#compiled.clear()
      this.#newest = -1
    }
    const rows = database
      .query<StateRow & Row, [number]>(`select ${this.#columns} from ${this.#table} where version > ?`)
      .all(this.#newest)
    for (const row of rows) {
      if (row.deleted === 0) this.#compiled.set(row.id, this.#compile(row, database))
      else this.#compiled.delete(row.id)
    }
    for (const { version } of rows) if (version > this.#newest) this.#newest = version
    return anew || rows.length > 0
  }
}
