/**
 * For tests: a control plane that has the fleet's routes only, on a real ledger, and workers that talk to it over
 * loopback. The state database is written through bun:sqlite, because workers in the same process read it so: a process
 * must not have one file open in two SQLite libraries (store/README.md).
 */
import { Database as Sqlite } from 'bun:sqlite'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testApplication } from '../../api/testing/application.ts'
import { createRecorder } from '../../events/change.ts'
import { logOf } from '../../events/engine/log-of.ts'
import { controlPlaneChain } from '../../events/log/chain.ts'
import type { LogRecord } from '../../events/log/record.ts'
import type { Recorder } from '../../events/recorder.ts'
import { asFailure, envelope, Failure } from '../../failure.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { seal } from '../../lib/seal.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { openMigrated } from '../../store/testing/store.ts'
import { startWorker, type WorkerOptions } from '../agent/gateway-agent.ts'
import { createFleet } from '../coordinator/coordinator.ts'
import type { GatewayAgent } from '../protocol/worker.ts'

export const randomBytes = (size: number): Uint8Array => crypto.getRandomValues(new Uint8Array(size))

const masterKey = testMasterKey()
const dataKey = randomBytes(32)
const runtimeToken = makeSecret('token', randomBytes)

export type Interfere = (path: string, request: Request, forward: () => Promise<Response>) => Promise<Response>

/** A record of a worker, with its place in its chain. */
type WorkerEvent = LogRecord & { chain: string; seq: number }

export class TemporaryFleet {
  readonly directory = mkdtempSync(join(tmpdir(), 'gatehouse-fleet-'))
  readonly stateFile = join(this.directory, 'state.db')
  readonly gatewayId = newId()
  readonly providerId = newId()
  readonly history = newId()
  /** Stands between workers and the control plane. */
  interfere: Interfere = (_path, _request, forward) => forward()
  /** Of control planes that start from now on. */
  maxStalenessSeconds = 300
  readonly #state: Sqlite
  #ledger: Database | null = null
  #control: ReturnType<typeof createFleet> | null = null
  #served: { control: ReturnType<typeof createFleet>; application: ReturnType<typeof testApplication> } | null = null
  #server: Bun.Server<unknown> | null = null
  readonly #workers: GatewayAgent[] = []

  static async start(): Promise<TemporaryFleet> {
    const fleet = new TemporaryFleet()
    await fleet.#begin()
    return fleet
  }

  private constructor() {
    this.#state = new Sqlite(this.stateFile, { create: true })
    this.#state.run('pragma journal_mode = wal')
    for (const { sql } of stateMigrations) this.#state.run(sql)
    this.#state.run("insert or replace into state_head values (1, 1, ?, ?, '0.2.0', 0)", [newId(), this.history])
    this.#state.run('insert into gateways (id, name, version) values (?, ?, 1)', [this.gatewayId, 'local'])
    const credentials = seal(dataKey, JSON.stringify({ api_key: 'upstream-key', headers: {} }), this.providerId)
    this.#state.run(
      "insert into providers (id, name, kind, sealed_credentials, position, version) values (?, 'up', 'openai', ?, 1, 1)",
      [this.providerId, credentials],
    )
    this.#state.run("insert into models (id, provider_id, created_at, version) values ('one', ?, 1, 1)", [
      this.providerId,
    ])
    this.#insertToken(hashSecret(runtimeToken), 1)
  }

  async #begin(): Promise<void> {
    this.#ledger = await openMigrated('ledger', this.directory)
    const secret = (name: string, value: string) => ({
      sql: 'insert into secrets (name, sealed, created_at) values (?, ?, 1)',
      args: [name, masterKey.seal('secret', name, value)],
    })
    await this.ledger.write([
      { sql: "insert into organizations (id, name, created_at) values (?, 'default', 1)", args: [newId()] },
      secret(`provider-key:${this.providerId}`, Buffer.from(dataKey).toString('base64')),
      secret('prompt-hash-key', JSON.stringify({ id: 'key-1', key: Buffer.from(randomBytes(32)).toString('base64') })),
    ])
    this.startControlPlane()
  }

  get ledger(): Database {
    if (this.#ledger === null) throw new RangeError('The ledger is not open')
    return this.#ledger
  }

  get control(): ReturnType<typeof createFleet> {
    if (this.#control === null) throw new RangeError('The control plane is not running')
    return this.#control
  }

  startControlPlane(port = 0): void {
    const state = this.#stateDatabase()
    const recorder: Recorder = createRecorder({
      ...{ state, ledger: this.ledger, clock: systemClock, log: silentLog },
      announce: () => undefined,
    })
    const control = createFleet({
      state,
      ledger: this.ledger,
      source: { file: this.stateFile },
      clock: systemClock,
      newId,
      randomBytes,
      log: silentLog,
      settings: { max_staleness_seconds: this.maxStalenessSeconds },
      masterKey,
      peerUrl: () => this.url,
      addressOf: () => '127.0.0.1',
      baseUrl: () => 'http://localhost:1',
      gatewayUrl: () => 'http://localhost:2',
      recorder: () => recorder,
    })
    this.#control = control
    const serve = (request: Request) => this.#serve(request)
    this.#server = Bun.serve({ hostname: '127.0.0.1', port, idleTimeout: 30, fetch: serve })
  }

  async stopControlPlane(): Promise<number> {
    const port = this.#server?.port ?? 0
    await this.#server?.stop(true)
    await this.#control?.close()
    this.#server = null
    this.#control = null
    return port
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server?.port ?? 1}`
  }

  readonly runtimeToken = runtimeToken

  async worker(name: string, options: Partial<WorkerOptions> = {}): Promise<GatewayAgent> {
    const worker = await startWorker({
      settings: {
        max_staleness_seconds: 300,
        outbox_segment_bytes: 256 * 1024,
        outbox_limit_bytes: 8 * 1024 * 1024,
        outbox_keep_hours: 1,
        usage_wait_seconds: 2,
      },
      stateFile: this.stateFile,
      dataDirectory: join(this.directory, name),
      apiUrl: this.url,
      apiToken: runtimeToken,
      fetch,
      clock: systemClock,
      newId,
      log: silentLog,
      onFenced: () => undefined,
      onRetired: () => undefined,
      heartbeatEveryMs: 50,
      ...options,
    })
    this.#workers.push(worker)
    return worker
  }

  /** Makes a token in the state and gives its hash. */
  addToken(): string {
    const hash = hashSecret(newId())
    this.change(() => this.#insertToken(hash, this.head().version))
    return hash
  }

  /** Like a peer whose signal is lost: the change is found with the next one. */
  addUnheardToken(): string {
    const hash = hashSecret(newId())
    this.#commit(() => this.#insertToken(hash, this.head().version))
    return hash
  }

  /** Revokes as the control plane does: the state first, then the announcement. */
  revoke(hash: string, only_revocations = false): Head {
    return this.change(
      () =>
        this.#state.run('update tokens set revoked_at = 1, version = ? where hash = ?', [this.head().version, hash]),
      [hash],
      [],
      only_revocations,
    )
  }

  get runtimeTokenHash(): string {
    return hashSecret(runtimeToken)
  }

  change(
    apply: () => unknown,
    revoked: readonly string[] = [],
    endRequests: readonly string[] = [],
    only_revocations = false,
  ): Head {
    const head = this.#commit(apply)
    this.#control?.fleet.announce(head, revoked, endRequests, only_revocations)
    return head
  }

  #commit(apply: () => unknown): Head {
    this.#state.transaction(() => {
      const id = newId()
      this.#state.run('update state_head set version = version + 1, nonce = ?', [id])
      this.#state.run('insert into change_log values (?, ?, 1, 0, 1)', [id, this.head().version])
      apply()
    })()
    return this.head()
  }

  head(): Head {
    const head = this.#state.query<Head, []>('select version, nonce, history from state_head').get()
    if (head === null) throw new RangeError('There is no head')
    return head
  }

  /** Puts a copy of the state as it is now in place of this file, as a replica would come to it. */
  copyState(file: string): void {
    this.#state.run('vacuum into ?', [`${file}.new`])
    renameSync(`${file}.new`, file)
  }

  /** Those of workers. */
  async events(): Promise<WorkerEvent[]> {
    const chains = await this.ledger.read<{ chain: string; seq: number }>(
      'select chain, seq from chains where chain <> ? order by chain',
      [controlPlaneChain],
    )
    const found: WorkerEvent[] = []
    for (const { chain, seq: upTo } of chains) {
      for await (const record of logOf(this.ledger).chains().records(chain, { after: 0, upTo, bodies: true })) {
        if (record === null) throw new RangeError(`A record of ${chain} cannot be read`)
        const event: LogRecord = JSON.parse(Buffer.from(record.body).toString())
        found.push({ chain, seq: record.seq, ...event })
      }
    }
    return found
  }

  async remove(): Promise<void> {
    this.interfere = async () => new Response(null, { status: 503 })
    for (const worker of this.#workers) await worker.drain().catch(() => undefined)
    await this.stopControlPlane()
    this.#ledger?.close()
    this.#state.close()
    rmSync(this.directory, { recursive: true, force: true })
  }

  #insertToken(hash: string, version: number): void {
    this.#state.run(
      `insert into tokens (id, hash, purpose, principal_type, key_class, gateway_id, roles, policy_ids,
         access_policy_ids, metadata_trust, owner_kind, owner_id, account_ids, version)
       values (?, ?, 'general', 'api_token', 'durable', ?, '["member"]', '[]', '[]', 'none', 'team', 'team', '[]', ?)`,
      [newId(), hash, this.gatewayId, version],
    )
  }

  #stateDatabase(): Database {
    return {
      write: () => Promise.reject(new RangeError('The fleet does not write the state')),
      writeAndRead: () => Promise.reject(new RangeError('The fleet does not write the state')),
      readAfter: () => Promise.reject(new RangeError('The fleet does not write the state')),
      flush: () => Promise.resolve(),
      read: async <Row>(sql: string, args: (string | number | null)[] = []) =>
        this.#state.query<Row, (string | number | null)[]>(sql).all(...args),
      readValues: async (sql, args = []) => this.#state.query(sql).values(...args),
      close: () => undefined,
    }
  }

  async #serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    try {
      return await this.interfere(pathname, request, async () => await this.#application().fetch(request))
    } catch (thrown) {
      const failure = asFailure(thrown)
      return Response.json(envelope(failure, 'request'), { status: failure.status })
    }
  }

  /** The routes of the control plane that runs now. */
  #application() {
    const { control } = this
    if (this.#served?.control !== control) {
      const authenticate = (request: Request) => this.#authenticate(request)
      this.#served = { control, application: testApplication({ features: control.routes, authenticate }) }
    }
    return this.#served.application
  }

  async #authenticate(request: Request): Promise<Principal> {
    const secret = (request.headers.get('authorization') ?? '').slice('Bearer '.length)
    const token = this.#state
      .query<{ id: string; revoked_at: number | null }, [string]>('select id, revoked_at from tokens where hash = ?')
      .get(hashSecret(secret))
    if (token !== null) {
      if (token.revoked_at !== null) throw new Failure('invalid_api_token')
      const bound = { tokenId: token.id, gatewayId: this.gatewayId, permissions: permissionsOf(['runtime', 'auditor']) }
      return { ...anonymous, kind: 'token', name: 'token', ...bound }
    }
    const [session] = await this.ledger.read<{ token_id: string; gateway_id: string; instance_id: string }>(
      'select token_id, gateway_id, instance_id from runtime_sessions where hash = ?',
      [hashSecret(secret)],
    )
    if (session === undefined) throw new Failure('session_expired')
    const { token_id: tokenId, gateway_id: gatewayId, instance_id: instanceId } = session
    return { ...anonymous, kind: 'runtime', name: 'runtime', tokenId, gatewayId, instanceId }
  }
}

/** The system's clock, which a test can set forward. */
export function movableClock(): Clock & { skip(milliseconds: number): void } {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    skip(milliseconds) {
      ahead += milliseconds
    },
  }
}
