/**
 * A fleet to test sidecars in: a real `sqld` that holds the state, a control plane of the fleet's routes in this
 * process, with a ledger of its own, and gateways of the real executable on data directories of their own.
 *
 * Longer than most: control plane, primary and gateways are one fleet, which a test takes apart piece by piece.
 */
import { createPrivateKey, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from '@libsql/client'
import { z } from 'zod'
import { testApplication } from '../../src/api/testing/application.ts'
import type { Recorder } from '../../src/events/recorder.ts'
import { asFailure, envelope, Failure } from '../../src/failure.ts'
import { createFleet } from '../../src/fleet/coordinator/coordinator.ts'
import { revocationsRequestSchema } from '../../src/fleet/protocol/wire.ts'
import { permissionsOf } from '../../src/identity/permissions.ts'
import { anonymous, type Principal } from '../../src/identity/principal.ts'
import { hashSecret, makeSecret } from '../../src/identity/secret.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { type Database, openDatabase } from '../../src/store/open.ts'
import type { Head, Propagation } from '../../src/store/propagation.ts'
import { migrateLedger, stateMigrations } from '../../src/store/schema/migrate.ts'
import type { Statement } from '../../src/store/statement.ts'
import { testMasterKey } from '../../src/store/testing/master-key.ts'
import { eventually, until } from './eventually.ts'
import { executable } from './executable.ts'
import { freePort } from './free-port.ts'
import { cleanEnvironment, collect } from './harness.ts'
import { childrenOf, descendantsOf, isAlive, signal } from './processes.ts'
import { type Sqld, startSqld } from './sqld.ts'

const masterKey = testMasterKey()

const readinessSchema = z.object({
  ok: z.boolean(),
  reason: z.string().optional(),
  warning: z.string().optional(),
  staleness_seconds: z.number().optional(),
})

export interface Sidecar {
  url: string
  directory: string
  supervisorPid: number
  gatewayPid(): number
  replicatorPid(): number
  stdout(): string
  stderr(): string
  readyz(): Promise<z.infer<typeof readinessSchema>>
  metric(name: string): Promise<number>
  ready(): Promise<void>
  /** The status that a token gets for a model list, which needs no provider. */
  ask(token: string): Promise<number>
  exited: Promise<number>
  /** Kills the supervisor and all below it. */
  kill(): Promise<void>
}

export class SidecarFleet implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'gatehouse-sidecars-'))
  readonly sqld: Sqld
  readonly gatewayId = newId()
  readonly runtimeToken = makeSecret('token', randomBytes)
  readonly #ledger: Database
  readonly #sidecars: Sidecar[] = []
  #control: ReturnType<typeof createFleet> | null = null
  #server: Bun.Server<unknown> | null = null
  #port = 0
  /** What workers told of what the primary forgot. */
  readonly told: { version: number; hash: string }[] = []
  deregistrations = 0
  /** How long a read credential holds, in seconds. */
  credentialSeconds = 600
  credentials = 0
  maxStalenessSeconds = 300
  /** What gateways are told of where the primary is; null: where it is. */
  primaryUrl: string | null = null

  static async start(maxStalenessSeconds = 300): Promise<SidecarFleet> {
    const sqld = await startSqld()
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-ledger-'))
    const fleet = new SidecarFleet(sqld, await openDatabase(join(directory, 'ledger.db'), directory))
    fleet.maxStalenessSeconds = maxStalenessSeconds
    await fleet.#begin()
    return fleet
  }

  private constructor(sqld: Sqld, ledger: Database) {
    this.sqld = sqld
    this.#ledger = ledger
  }

  async #begin(): Promise<void> {
    await migrateLedger(this.#ledger)
    const secret = JSON.stringify({ id: 'key-1', key: randomBytes(32).toString('base64') })
    await this.#ledger.write([
      { sql: "insert into organizations (id, name, created_at) values (?, 'default', 1)", args: [newId()] },
      {
        sql: 'insert into secrets (name, sealed, created_at) values (?, ?, 1)',
        args: ['prompt-hash-key', masterKey.seal('secret', 'prompt-hash-key', secret)],
      },
    ])
    await this.makeState()
    this.startControlPlane()
  }

  /** Fills an empty primary: a history of its own, this fleet's gateway and its runtime token. */
  async makeState(): Promise<void> {
    const client = this.client()
    for (const { sql } of stateMigrations) await client.executeMultiple(sql)
    const id = newId()
    await client.batch(
      [
        { sql: 'update state_head set nonce = ?, version = 1', args: [id] },
        // Without it a worker that still has this version is told that the primary was replaced.
        { sql: 'insert into change_log (event_id, version, applied, at, guard) values (?, 1, 1, 1, 1)', args: [id] },
        { sql: "insert into gateways (id, name, version) values (?, 'local', 1)", args: [this.gatewayId] },
        tokenRow(hashSecret(this.runtimeToken), this.gatewayId),
      ],
      'write',
    )
  }

  client(): Client {
    return createClient({ url: this.sqld.url, authToken: this.sqld.token })
  }

  startControlPlane(): void {
    const recorder: Recorder = {
      // Nothing is recorded: this is about what gateways are told and decide by.
      change: async () => ({ head: await this.head() }),
      append: async () => undefined,
      applyPending: async () => undefined,
    }
    const options = {
      state: this.#state(),
      ledger: this.#ledger,
      clock: systemClock,
      newId,
      randomBytes,
      log: silentLog,
      settings: { max_staleness_seconds: this.maxStalenessSeconds },
      masterKey,
      baseUrl: () => 'http://localhost:1',
      gatewayUrl: () => 'http://localhost:2',
      recorder: () => recorder,
      source: { url: this.sqld.url, credential: () => this.#credential() },
      peerUrl: () => 'http://127.0.0.1:1',
      addressOf: () => '127.0.0.1',
    }
    this.#control = createFleet(options)
    const serve = (request: Request) => this.#serve(request)
    this.#server = Bun.serve({ hostname: '127.0.0.1', port: this.#port, idleTimeout: 30, fetch: serve })
    this.#port = this.#server.port ?? 0
  }

  async stopControlPlane(): Promise<void> {
    await this.#server?.stop(true)
    await this.#control?.close()
    this.#server = null
    this.#control = null
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Starts a gateway on a directory of this name; a second start of the same name goes on where the first ended. */
  async sidecar(name: string, environment: Readonly<Record<string, string>> = {}): Promise<Sidecar> {
    const path = await executable()
    const directory = join(this.directory, name)
    const port = await freePort()
    const child = Bun.spawn([path, 'gateway'], {
      cwd: this.directory,
      env: cleanEnvironment({
        SERVICE_API_URL: this.url,
        SERVICE_API_TOKEN: this.runtimeToken,
        SERVICE_DATA: directory,
        SERVICE_GATEWAY_LISTEN: `127.0.0.1:${port}`,
        ...environment,
      }),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const url = `http://127.0.0.1:${port}`
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
    const childOf = (pid: number): number => {
      const [found] = childrenOf(pid)
      if (found === undefined) throw new Error(`${pid} has no child`)
      return found
    }
    const sidecar: Sidecar = {
      url,
      directory,
      supervisorPid: child.pid,
      gatewayPid: () => childOf(child.pid),
      replicatorPid: () => childOf(childOf(child.pid)),
      stdout,
      stderr,
      readyz: async () => readinessSchema.parse(await (await fetch(`${url}/readyz`)).json()),
      async metric(metric) {
        const text = await (await fetch(`${url}/metrics`)).text()
        return Number(new RegExp(`^${metric} (.+)$`, 'm').exec(text)?.[1])
      },
      ready: () =>
        eventually(
          async () => {
            const answer = await fetch(`${url}/readyz`)
            if (!answer.ok) throw new Error(`Not ready: ${await answer.text()}\n${stdout()}\n${stderr()}`)
          },
          { withinMs: 60_000 },
        ),
      async ask(token) {
        const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
        await answer.text()
        return answer.status
      },
      exited: child.exited,
      async kill() {
        const family = [child.pid, ...descendantsOf(child.pid)]
        for (const pid of family) signal(pid, 'SIGKILL')
        await child.exited
        await until('all processes have ended', () => !family.some(isAlive))
      },
    }
    this.#sidecars.push(sidecar)
    return sidecar
  }

  /** Makes a token; gives its secret. */
  async addToken(): Promise<string> {
    const secret = makeSecret('token', randomBytes)
    await this.change([tokenRow(hashSecret(secret), this.gatewayId)])
    return secret
  }

  /** Revokes as a control plane does, and gives what workers said of it. */
  async revoke(secret: string): Promise<Propagation> {
    const hash = hashSecret(secret)
    const { version } = await this.change(
      [
        {
          sql: 'update tokens set revoked_at = 1, version = (select version from state_head) where hash = ?',
          args: [hash],
        },
      ],
      [hash],
    )
    if (this.#control === null) throw new RangeError('The control plane is not running')
    return await this.#control.fleet.propagation(version)
  }

  /** Changes the state in one version, with its line in the log of changes, and announces it. */
  async change(statements: readonly Statement[], revoked: readonly string[] = []): Promise<Head> {
    const id = newId()
    await this.client().batch(
      [
        { sql: 'update state_head set version = version + 1, nonce = ?', args: [id] },
        {
          sql: 'insert into change_log (event_id, version, applied, at, guard) select ?, version, 1, 1, 1 from state_head',
          args: [id],
        },
        ...statements.map(({ sql, args }) => ({ sql, args })),
      ],
      'write',
    )
    const head = await this.head()
    this.#control?.fleet.announce(head, revoked, [])
    return head
  }

  async head(): Promise<Head> {
    const [head] = await this.#state().read<Head>('select version, nonce, history from state_head')
    if (head === undefined) throw new RangeError('There is no head')
    return head
  }

  async stop(): Promise<void> {
    for (const sidecar of this.#sidecars) await sidecar.kill()
    await this.stopControlPlane()
    this.#ledger.close()
    await this.sqld[Symbol.asyncDispose]()
    rmSync(this.directory, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #state(): Database {
    const client = this.client()
    return {
      write: () => Promise.reject(new RangeError('The fleet does not write the state')),
      writeAndRead: () => Promise.reject(new RangeError('The fleet does not write the state')),
      readAfter: () => Promise.reject(new RangeError('The fleet does not write the state')),
      flush: () => Promise.resolve(),
      async read<Row>(sql: string, args: Statement['args'] = []) {
        const { columns, rows } = await client.execute({ sql, args })
        return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]]))) as Row[]
      },
      async readValues(sql, args = []) {
        const { columns, rows } = await client.execute({ sql, args })
        return rows.map((row) => columns.map((_, at) => row[at]))
      },
      close: () => undefined,
    }
  }

  async #serve(request: Request): Promise<Response> {
    const url = new URL(request.url)
    try {
      return await this.#answer(url, request)
    } catch (thrown) {
      const failure = asFailure(thrown)
      return Response.json(envelope(failure, 'request'), { status: failure.status })
    }
  }

  async #answer(url: URL, request: Request): Promise<Response> {
    const principal = await this.#authenticate(request)
    const call = url.pathname.slice('/v1/gateway-runtime/'.length)
    if (call === 'credential') return Response.json({ state: this.#source(), now: new Date().toISOString() })
    if (call === 'deregister') this.deregistrations++
    if (call === 'revocations') {
      const { revocations } = revocationsRequestSchema.parse(await request.json())
      this.told.push(...revocations)
      for (const { hash } of revocations) {
        const sql = 'update tokens set revoked_at = 1, version = (select version from state_head) where hash = ?'
        await this.change([{ sql, args: [hash] }], [hash])
      }
      return Response.json({ head: await this.head(), revoked: revocations.length })
    }
    const features = this.#control?.routes ?? []
    const answer = await testApplication({ features, authenticate: async () => principal }).fetch(request)
    if (call !== 'bootstrap' || !answer.ok) return answer
    return Response.json({ ...Object(await answer.json()), state: this.#source() })
  }

  #credential() {
    this.credentials++
    const until = Math.floor(Date.now() / 1000) + this.credentialSeconds
    return { token: readCredential(this.sqld, until), expiresAt: until * 1000 }
  }

  #source() {
    const { token, expiresAt } = this.#credential()
    return {
      kind: 'replica',
      url: this.primaryUrl ?? this.sqld.url,
      token,
      expires_at: new Date(expiresAt).toISOString(),
    }
  }

  async #authenticate(request: Request): Promise<Principal> {
    const hash = hashSecret((request.headers.get('authorization') ?? '').slice('Bearer '.length))
    const [session] = await this.#ledger.read<{ token_id: string; gateway_id: string; instance_id: string }>(
      'select token_id, gateway_id, instance_id from runtime_sessions where hash = ?',
      [hash],
    )
    if (session !== undefined) {
      const { token_id: tokenId, gateway_id: gatewayId, instance_id: instanceId } = session
      return { ...anonymous, kind: 'runtime', name: 'runtime', tokenId, gatewayId, instanceId }
    }
    const [token] = await this.#state()
      .read<{ id: string; revoked_at: number | null }>('select id, revoked_at from tokens where hash = ?', [hash])
      .catch((error: unknown) => {
        throw new Failure('dependency_unavailable', { cause: error })
      })
    if (token === undefined) throw new Failure('session_expired')
    if (token.revoked_at !== null) throw new Failure('invalid_api_token')
    const bound = { tokenId: token.id, gatewayId: this.gatewayId, permissions: permissionsOf(['runtime']) }
    return { ...anonymous, kind: 'token', name: 'token', ...bound }
  }
}

const tokenRow = (hash: string, gatewayId: string): Statement => ({
  sql: `insert into tokens (id, hash, purpose, principal_type, key_class, gateway_id, roles, policy_ids,
          access_policy_ids, metadata_trust, owner_kind, owner_id, account_ids, version)
        select ?, ?, 'general', 'api_token', 'durable', ?, '["member"]', '[]', '[]', 'none', 'team', 'team', '[]', version
        from state_head`,
  args: [newId(), hash, gatewayId],
})

/** A credential that reads, until so many seconds since the epoch. */
function readCredential(sqld: Sqld, exp: number): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part({ p: { ro: { ns: ['default'] } }, exp })}`
  return `${signed}.${sign(null, Buffer.from(signed), createPrivateKey(readFileSync(sqld.signingKeyFile))).toString('base64url')}`
}
