/**
 * Statements on the table of records, and what comes of them.
 *
 * SQL text: another database's own language.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { Failure } from '../../failure.ts'
import type { RecordRow } from './record-row.ts'
import { recordsTable, schemaComment } from './schema.ts'

export type Parameters = Record<string, string | number | readonly string[] | readonly number[]>

/** What ClickHouse says of itself: whether it can keep the records. */
export type ArchiveState = 'ready' | 'away' | 'refused' | 'no_table' | 'other_schema'

/** The name of ClickHouse's own error (its `ErrorCodes.cpp`), such as UNKNOWN_TABLE; null where nothing answered. */
const errorName = (error: unknown): string | null =>
  error instanceof Error && 'type' in error && typeof error.type === 'string' ? error.type : null

const stateOfError: Readonly<Record<string, ArchiveState>> = {
  AUTHENTICATION_FAILED: 'refused',
  REQUIRED_PASSWORD: 'refused',
  IP_ADDRESS_NOT_ALLOWED: 'refused',
  ACCESS_DENIED: 'refused',
  UNKNOWN_DATABASE: 'no_table',
  UNKNOWN_TABLE: 'no_table',
}

/** With the error's name only: its text may have the address with its user, and what was sent. */
function failed(cause: unknown): Failure {
  const name = errorName(cause)
  const what = name === null ? 'did not answer' : `answered with the error ${name}`
  return new Failure('dependency_unavailable', {
    cause,
    message: `ClickHouse, which keeps older events, ${what}`,
    retryAfter: 1,
  })
}

/** How long an answer may take for which a worker, a page of metrics or a start waits, in milliseconds. */
const quickMilliseconds = 3000
/** Where a call failed after so long, further ones fail at once for a while: they would all wait. */
const slowMilliseconds = 1000
const restMilliseconds = 5000

/** A ledger that was restored gives positions again that ClickHouse has from before. */
const otherRecords = (position: number): Failure =>
  new Failure('dependency_unavailable', {
    message: `ClickHouse has other records than the ledger from position ${position} on: nothing is moved. See the handbook, events in ClickHouse`,
  })

/** Throws `dependency_unavailable` where ClickHouse does not answer. */
export class RecordsTable {
  readonly #client: ClickHouseClient
  #restsUntil = 0

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  async state(): Promise<ArchiveState> {
    try {
      const [table] = await this.quickRows<{ comment: string }>(
        'SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
        { name: recordsTable },
      )
      if (table === undefined) return 'no_table'
      return table.comment === schemaComment ? 'ready' : 'other_schema'
    } catch (error) {
      const name = error instanceof Failure ? errorName(error.cause) : null
      return stateOfError[name ?? ''] ?? 'away'
    }
  }

  /** The rows of a query; numbers of 64 bits are numbers. */
  rows<Shape>(query: string, parameters: Parameters, signal?: AbortSignal): Promise<Shape[]> {
    return this.#call(async () => {
      const answer = await this.#client.query({
        query,
        query_params: parameters,
        format: 'JSONEachRow',
        clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
        ...(signal === undefined ? {} : { abort_signal: signal }),
      })
      return await answer.json<Shape>()
    })
  }

  /** The same for what must not wait long. */
  quickRows<Shape>(query: string, parameters: Parameters): Promise<Shape[]> {
    return this.rows(query, parameters, AbortSignal.timeout(quickMilliseconds))
  }

  /** Whether there is a record at a position or behind it. */
  async holdsFrom(position: number): Promise<boolean> {
    const query = `SELECT position FROM ${recordsTable} WHERE position >= {position:UInt64} LIMIT 1`
    return (await this.rows(query, { position })).length > 0
  }

  /**
   * Resolves once ClickHouse has these consecutive records, which it was asked for: an insert whose token it knows adds
   * nothing, even where the rows of the first one are gone. `signal` breaks it off.
   */
  async insert(rows: readonly RecordRow[], signal?: AbortSignal): Promise<void> {
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return
    const token = `${first.position}-${last.position}-${Bun.hash(last.text).toString(36)}`
    for (const each of [token, `${token}-${Bun.randomUUIDv7()}`]) {
      await this.#call(() =>
        this.#client.insert({
          table: recordsTable,
          values: rows,
          format: 'JSONEachRow',
          ...(signal === undefined ? {} : { abort_signal: signal }),
          clickhouse_settings: {
            insert_deduplication_token: each,
            wait_end_of_query: 1,
          },
        }),
      )
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
    await this.#call(() =>
      this.#client.command({
        query: `DELETE FROM ${recordsTable} WHERE position < {before:UInt64}`,
        query_params: { before },
      }),
    )
  }

  async #call<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const began = performance.now()
    if (began < this.#restsUntil) throw failed(null)
    try {
      return await work()
    } catch (error) {
      const now = performance.now()
      if (errorName(error) === null && now - began >= slowMilliseconds) this.#restsUntil = now + restMilliseconds
      throw failed(error)
    }
  }
}
