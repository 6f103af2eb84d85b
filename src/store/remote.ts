/**
 * Opens a database of a libSQL server (sqld, Turso Cloud) over HTTP, without the native addon. Every call is one
 * request (reads on streams that are kept: kept-streams.ts); a `write` is one batch, which the server commits or
 * undoes whole, so no transaction is ever held across an await.
 *
 *   - Every call ends: after `callMilliseconds` it is `dependency_unavailable`, however the server hangs. What a write
 *     that was not answered has done is not known; whoever wrote finds out (events/change.ts).
 *   - Tried again, within that time: what never reached the server, what it says it was too busy to begin, and reads.
 *   - The database's own word, a broken constraint or a fault in a statement, is passed on as it is.
 *   - One write at once, the others in order behind it: the server has one writer, and more of them at its door commit
 *     no faster. Each that waits there holds a snapshot, for whose end the server's checkpoint waits while they wait for
 *     it: with three from all control planes together, sqld 0.24.32 stopped for five seconds, or for good (tried; reads
 *     go on, only its restart helps). So the next is sent once this one has ended: of one that was given up the server
 *     may still be at work.
 *   - In the clear only to this host: elsewhere the credential and all that is read would cross a network readable.
 *
 * sqld has foreign keys on and WAL; it commits with `synchronous = normal`, which its host's crash may cost the last
 * moments of.
 */
import type { Client, InStatement, ResultSet } from '@libsql/client'
import { Failure } from '../failure.ts'
import { type ClientFetch, keptStreams } from './kept-streams.ts'
import type { Database, LowPriority } from './open.ts'
import { places } from './places.ts'
import { RoundTrip } from './round-trip.ts'
import type { Row, Statement } from './statement.ts'

export interface RemoteOptions {
  /** `libsql://`, `https://`, or `http://` on this host. */
  url: string
  /** The credential, where the server asks for one (a secret). */
  token: string | undefined
  /** What messages call it: state, ledger. */
  name: string
  /** How long a caller waits at most. */
  callMilliseconds?: number
}

const attempts = 4
const firstPauseMilliseconds = 20
/** How long a write that its caller has given up is waited for before the next is sent. */
const endOfWriteMilliseconds = 15_000
/**
 * Reads on their way at once; further ones wait here within their own time, and are not sent once nobody waits for
 * them. sqld takes 128 requests from all control planes together, and writes would wait behind more reads than that.
 */
const readsAtOnce = 32

/** Opens it; does not connect. Throws `invalid_parameter` for an address in the clear that is not of this host. */
export async function openRemoteDatabase({
  url,
  token,
  name,
  callMilliseconds = 5000,
}: RemoteOptions): Promise<Database> {
  const address = remoteAddress(url, name)
  const { createClient } = await import('@libsql/client/http')
  const open = (concurrency: number, send: ClientFetch): Client =>
    createClient({ url: address, ...(token === undefined ? {} : { authToken: token }), concurrency, fetch: send })
  const sendWithin =
    (milliseconds: number): ClientFetch =>
    (request) =>
      fetch(request, { signal: AbortSignal.timeout(milliseconds) })
  const reader = open(
    readsAtOnce,
    keptStreams(sendWithin(callMilliseconds), () => performance.now()),
  )
  const writer = open(1, sendWithin(endOfWriteMilliseconds))
  const guarded = guard({ reader, writer, name, callMilliseconds })
  return {
    async write(statements, patient) {
      await guarded.write(statements.map(inStatement), patient)
    },
    async writeAndRead<Shape>(statements: readonly Statement[]) {
      return lastRows(await guarded.write(statements.map(inStatement))) as Shape[]
    },
    async read<Shape>(sql: string, args: Statement['args'] = []) {
      return rowsOf(await guarded.read({ sql, args })) as Shape[]
    },
    async readValues(sql, args = []) {
      const { columns, rows } = await guarded.read({ sql, args })
      return rows.map((row) => columns.map((_, index) => row[index]))
    },
    async readAfter(statements, { sql, args }) {
      const results = await guarded.attempt([...statements.map(inStatement), { sql, args }])
      const { columns = [], rows = [] } = results.at(-1) ?? {}
      return { columns, rows: rows.map((row) => columns.map((_, index) => row[index])) }
    },
    // What its server has committed is as safe as it gets.
    flush: () => Promise.resolve(),
    close() {
      reader.close()
      writer.close()
    },
  }
}

const isLoopback = (hostname: string): boolean => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/** The address as the client takes it. */
export function remoteAddress(url: string, name: string): string {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !isLoopback(hostname)) {
    throw new Failure('invalid_parameter', {
      message: `The ${name} database must be reached over https:// or libsql://, unless it is on this host`,
      param: `${name}_url`,
    })
  }
  return url.replace(/^libsql:/, 'https:')
}

const rowsOf = ({ columns, rows }: ResultSet): Row[] =>
  rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])))

/** The rows of a batch's last statement. */
function lastRows(results: readonly ResultSet[]): Row[] {
  const last = results.at(-1)
  return last === undefined ? [] : rowsOf(last)
}

const inStatement = ({ sql, args }: Statement): InStatement => ({ sql, args })

type Guarded = { reader: Client; writer: Client } & Required<Pick<RemoteOptions, 'name' | 'callMilliseconds'>>

/** The client's calls, each with its end and its repetitions. */
function guard({ reader, writer, name, callMilliseconds }: Guarded) {
  const [inPlace, reading] = [places(1), places(readsAtOnce)]
  const way = new RoundTrip(() => performance.now())
  const read = <Result>(run: () => Promise<Result>) =>
    within(
      (wanted) => persist(() => reading(() => way.seen(run), wanted), true),
      callMilliseconds,
      `The ${name} database cannot be used at the moment`,
    )
  const write = <Result>(run: () => Promise<Result>, patient?: LowPriority) =>
    within(
      (wanted) => persist(() => inPlace(() => way.beyond(run, patient), wanted, patient !== undefined), false),
      callMilliseconds,
      `The ${name} database takes no writes at the moment`,
    )
  return {
    write: (statements: InStatement[], patient?: LowPriority) =>
      write(() => writer.batch(statements, 'write'), patient),
    attempt: (statements: InStatement[]) =>
      write(async () => {
        const transaction = await writer.transaction('write')
        try {
          return await transaction.batch(statements)
        } finally {
          transaction.close()
        }
      }),
    read: (statement: Statement) =>
      isRead(statement.sql)
        ? read(() => reader.execute(inStatement(statement)))
        : write(() => writer.execute(inStatement(statement))),
  }
}

const isRead = (sql: string): boolean => /^\s*select\b/i.test(sql)

async function persist<Result>(run: () => Promise<Result>, repeatable: boolean): Promise<Result> {
  let pause = firstPauseMilliseconds
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run()
    } catch (error) {
      const again = neverBegun(error) || (repeatable && !isOwnWord(error) && !timedOut(error))
      if (!again || attempt === attempts) throw error
      await Bun.sleep(pause)
      pause *= 3
    }
  }
}

/**
 * Gives up in time, after which nothing is `wanted`, and tells what the database said from that it could not be asked.
 */
async function within<Result>(
  work: (wanted: () => boolean) => Promise<Result>,
  milliseconds: number,
  message: string,
): Promise<Result> {
  const late = Promise.withResolvers<never>()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    late.reject(new DOMException('No answer in time', 'TimeoutError'))
  }, milliseconds)
  try {
    return await Promise.race([work(() => !isLate), late.promise])
  } catch (error) {
    if (isOwnWord(error)) throw error
    throw new Failure('dependency_unavailable', { message, cause: error, retryAfter: 1 })
  } finally {
    clearTimeout(timer)
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

const isBusy = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))

/** A database without its tables was wiped: there is nobody to ask. */
const isOwnWord = (error: unknown): boolean =>
  /^SQL(ITE)?_/.test(codeOf(error)) && !isBusy(error) && !/no such table/.test(String(error))

const neverBegun = (error: unknown): boolean => isBusy(error) || codeOf(error) === 'ECONNREFUSED'

const timedOut = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'
