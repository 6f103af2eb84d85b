/**
 * ClickHouse itself, embedded (chdb), behind the part of its HTTP interface that its client uses
 * (https://clickhouse.com/docs/interfaces/http): statements in the body or in `query`, `param_NAME`, settings in the
 * address. One at a time: the engine has one connection.
 */
import { Session } from 'chdb'

export interface ClickHouseServer {
  url: string
  /** What was asked since the start, without parameters. */
  statements: string[]
  /** Before a statement runs; a thrown error is answered with 500 and the statement does not run. */
  before: (statement: string) => Promise<void> | void
  /** After it ran; a thrown error is answered with 500 although it did. */
  after: (statement: string) => Promise<void> | void
  stop(): Promise<void>
}

export interface ClickHouseOptions {
  port?: number
  /** Keeps what is written; without it a new one that `stop` removes. */
  directory?: string
  /** `USER:PASSWORD`; without it anybody is let in. */
  login?: string
  tls?: { key: string; cert: string }
}

/** Parts of an address that are no setting of the engine. */
const notSettings = new Set([
  'query',
  'query_id',
  'database',
  'session_id',
  'wait_end_of_query',
  'default_format',
  'role',
])

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** As ClickHouse 25 says it (`Code: 516`), with the status of `exceptionCodeToHTTPStatus` in its source. */
const refused = () =>
  new Response(
    'Code: 516. DB::Exception: gatehouse: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED) (version 25.8.1.1)\n',
    { status: 403, headers: { 'x-clickhouse-exception-code': '516' } },
  )

export function startClickHouse({ port = 0, directory, login, tls }: ClickHouseOptions = {}): ClickHouseServer {
  const session = new Session(directory)
  const authorization = login === undefined ? null : `Basic ${Buffer.from(login).toString('base64')}`
  const run = (statement: string, address: URLSearchParams): string => {
    session.query(`USE ${address.get('database') ?? 'default'}`)
    const settings = [...address].filter(([name]) => !notSettings.has(name))
    for (const [name, value] of settings) session.query(`SET ${name} = ${quoted(value)}`)
    try {
      return session.query(statement)
    } finally {
      for (const [name] of settings) if (!name.startsWith('param_')) session.query(`SET ${name} = DEFAULT`)
    }
  }
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    ...(tls === undefined ? {} : { tls }),
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/ping') return new Response('Ok.\n')
      if (authorization !== null && request.headers.get('authorization') !== authorization) return refused()
      const bytes = await request.bytes()
      const isCompressed = request.headers.get('content-encoding') === 'gzip'
      const body = Buffer.from(isCompressed ? Bun.gunzipSync(new Uint8Array(bytes)) : bytes).toString()
      const query = searchParams.get('query')
      const statement = query === null ? body : `${query}\n${body}`
      try {
        fake.statements.push(query ?? body)
        await fake.before(statement)
        const answer = run(statement, searchParams)
        await fake.after(statement)
        return new Response(answer)
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        return new Response(message, { status: 500, headers: { 'x-clickhouse-exception-code': '1' } })
      }
    },
  })
  const fake: ClickHouseServer = {
    url: `${tls === undefined ? 'http://127.0.0.1' : 'https://localhost'}:${server.port}`,
    statements: [],
    before: () => undefined,
    after: () => undefined,
    async stop() {
      await server.stop(true)
      if (directory === undefined) session.cleanup()
    },
  }
  return fake
}
