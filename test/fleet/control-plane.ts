/** One control plane on databases of servers: `gatehouse control-plane`, on a port that it keeps through restarts. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client/http'
import { z } from 'zod'
import type { Reader } from '../../src/store/open.ts'
import type { Row, Statement } from '../../src/store/statement.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryDirectory } from '../support/harness.ts'
import { readerOf } from '../support/log-reader.ts'
import { type Sqld, startSqld } from '../support/sqld.ts'
import { type Running, start } from './process.ts'

/** The two databases, and what every control plane on them is given. */
export interface Primary extends AsyncDisposable {
  state: Sqld
  ledger: Sqld
  environment: Readonly<Record<string, string>>
  /** Rows, as they lie in a database. */
  read(database: 'state' | 'ledger', sql: string, args?: Statement['args']): Promise<Row[]>
  /** The ledger, for what reads the event log. */
  log: Reader
}

/** Two servers, or with `namespaces` one that has both databases. */
export async function startPrimary({ namespaces = false } = {}): Promise<Primary> {
  const state = await startSqld(namespaces ? ['state', 'ledger'] : [])
  const ledger = namespaces ? state : await startSqld()
  const [stateUrl, ledgerUrl] = namespaces ? [state.urlOf('state'), state.urlOf('ledger')] : [state.url, ledger.url]
  const read: Primary['read'] = async (database, sql, args = []) => {
    const url = database === 'state' ? stateUrl : ledgerUrl
    const client = createClient({ url, authToken: (database === 'state' ? state : ledger).token })
    const { columns, rows } = await client.execute({ sql, args })
    client.close()
    return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])))
  }
  return {
    state,
    ledger,
    environment: {
      SERVICE_STATE_URL: stateUrl,
      SERVICE_STATE_TOKEN: state.token,
      SERVICE_LEDGER_URL: ledgerUrl,
      SERVICE_LEDGER_TOKEN: ledger.token,
      SERVICE_STATE_SIGNING_KEY_FILE: state.signingKeyFile,
      SERVICE_MASTER_KEY: randomBytes(32).toString('base64'),
    },
    read,
    log: readerOf((sql, args) => read('ledger', sql, args)),
    async [Symbol.asyncDispose]() {
      await state[Symbol.asyncDispose]()
      if (ledger !== state) await ledger[Symbol.asyncDispose]()
    },
  }
}

export interface ControlPlane extends AsyncDisposable {
  baseUrl: string
  /** Of a first start, otherwise empty until somebody fills it in. */
  adminToken: string
  running(): Running
  kill(): Promise<void>
  restart(): Promise<void>
}

const readyLine = z.object({ ready: z.literal(true), base_url: z.string(), admin_token: z.string().optional() })

/** Starts one and waits until it is ready. Throws with all it said where it ends instead. */
export async function startControlPlane(
  primary: Pick<Primary, 'environment'>,
  environment: Readonly<Record<string, string>> = {},
): Promise<ControlPlane> {
  const data = join(temporaryDirectory(), 'data')
  const port = await freePort()
  const begin = async () => {
    const process = await start(['control-plane', '--json', '--data', data], {
      ...primary.environment,
      SERVICE_CONTROL_PLANE_LISTEN: `127.0.0.1:${port}`,
      ...environment,
    })
    // Waits no longer for an ended process than it takes to read its last output.
    const ended = process.exited.then(() => eventually(() => readyOf(process), { withinMs: 500 }))
    const ready = eventually(() => readyOf(process), { withinMs: 60_000 })
    const line = await Promise.race([ready, ended]).catch(async (error) => {
      await process.kill()
      throw error
    })
    return { process, line }
  }
  let { process, line } = await begin()
  const kill = () => process.kill()
  return {
    baseUrl: line.base_url,
    adminToken: line.admin_token ?? '',
    running: () => process,
    kill,
    async restart() {
      await kill()
      ;({ process, line } = await begin())
    },
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(join(data, '..'), { recursive: true, force: true })
    },
  }
}

function readyOf({ stdout, stderr, exitCode }: Running): z.infer<typeof readyLine> {
  const line = stdout()
    .split('\n')
    .find((text) => text.startsWith('{"ready":true'))
  if (line !== undefined) return readyLine.parse(JSON.parse(line))
  throw new Error(`Not ready (exit code ${exitCode()})\nstdout: ${stdout()}\nstderr: ${stderr()}`)
}
