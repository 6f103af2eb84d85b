/**
 * Statements on the table of records, and what comes of them.
 *
 * SQL text: another database's own language.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { Failure } from '../../failure.ts'
import type { RecordRow } from './record-row.ts'
import { recordsTable } from './schema.ts'

export type Parameters = Record<string, string | number | readonly string[] | readonly number[]>

/** Without the answer: it may name the address with its user. */
const failed = (cause: unknown): Failure =>
  new Failure('dependency_unavailable', {
    cause,
    message: `ClickHouse, which keeps older events, did not answer${isUnknownTable(cause) ? ': it has no tables yet' : ''}`,
    retryAfter: 1,
  })

const isUnknownTable = (error: unknown): boolean =>
  error instanceof Error && 'type' in error && error.type === 'UNKNOWN_TABLE'

/** A ledger that was restored gives positions again that ClickHouse has from before. */
const otherRecords = (position: number): Failure =>
  new Failure('dependency_unavailable', {
    message: `ClickHouse has other records than the ledger from position ${position} on: nothing is moved. See the handbook, events in ClickHouse`,
  })

/** Throws `dependency_unavailable` where ClickHouse does not answer. */
export class RecordsTable {
  readonly #client: ClickHouseClient

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /** The rows of a query; numbers of 64 bits are numbers. */
  async rows<Shape>(query: string, parameters: Parameters): Promise<Shape[]> {
    try {
      const answer = await this.#client.query({
        query,
        query_params: parameters,
        format: 'JSONEachRow',
        clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
      })
      return await answer.json<Shape>()
    } catch (error) {
      throw failed(error)
    }
  }

  /** The position behind the last record that was ever inserted. */
  async end(): Promise<number> {
    const [row] = await this.rows<{ last: number }>(`SELECT max(position) AS last FROM ${recordsTable}`, {})
    return (row?.last ?? 0) + 1
  }

  /**
   * Resolves once ClickHouse has these consecutive records, which it was asked for: an insert whose token it knows adds
   * nothing, even where the rows of the first one are gone.
   */
  async insert(rows: readonly RecordRow[]): Promise<void> {
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return
    const token = `${first.position}-${last.position}-${Bun.hash(last.text).toString(36)}`
    for (const each of [token, `${token}-${Bun.randomUUIDv7()}`]) {
      await this.#client
        .insert({
          table: recordsTable,
          values: rows,
          format: 'JSONEachRow',
          clickhouse_settings: {
            insert_deduplication_token: each,
            deduplicate_blocks_in_dependent_materialized_views: 1,
            wait_end_of_query: 1,
          },
        })
        .catch((error: unknown) => Promise.reject(failed(error)))
      const [found] = await this.rows<{ records: number }>(
        `SELECT uniqExact((position, at, chain, seq, text)) AS records FROM ${recordsTable} WHERE position BETWEEN {first:UInt64} AND {last:UInt64}`,
        { first: first.position, last: last.position },
      )
      if (found?.records === rows.length) return
      if (found !== undefined && found.records > rows.length) throw otherRecords(first.position)
    }
    throw new Failure('dependency_unavailable', { message: 'ClickHouse took records and does not have them' })
  }

  /** Resolves once no reader finds those below a position. */
  async remove(before: number): Promise<void> {
    try {
      await this.#client.command({
        query: `DELETE FROM ${recordsTable} WHERE position < {before:UInt64}`,
        query_params: { before },
      })
    } catch (error) {
      throw failed(error)
    }
  }
}
