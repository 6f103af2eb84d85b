/**
 * The composition roots: the only place that knows every part. Each opens what it needs, hands it to the parts, mounts
 * their routes and says how to stop.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createAnswerStore } from './api/idempotency.ts'
import { mount } from './api/mount.ts'
import { environmentName, type SettingName, type Settings } from './config.ts'
import { createRecorder } from './events/change.ts'
import type { Recorder } from './events/recorder.ts'
import { eventRoutes } from './events/routes.ts'
import { Failure } from './failure.ts'
import { createFleet } from './fleet/control.ts'
import type { Fleet } from './fleet/fleet.ts'
import { startLane } from './fleet/lane-runtime.ts'
import { gatewayRouteDescriptions } from './gateway/routes.ts'
import { createGateway } from './gateway/server.ts'
import type { Clock } from './lib/clock.ts'
import type { NewId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { firstStart } from './members/first-start.ts'
import { registerProvidersFromEnvironment } from './providers/catalog.ts'
import { loadMasterKey } from './store/master-key.ts'
import { migrateLedger, migrateState } from './store/migrate.ts'
import { openDatabase } from './store/open.ts'
import { createControlPlaneMetrics } from './telemetry/metrics.ts'
import { createAuthenticator } from './tokens/authenticate.ts'
import { createLastUse } from './tokens/last-use.ts'
import { tokenRoutes } from './tokens/routes.ts'

export interface ControlPlaneOptions {
  settings: Settings
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  newId: NewId
  log: Log
}

export interface ControlPlane {
  baseUrl: string
  /** The state database, for a gateway on this host to read. */
  stateFile: string
  /** What that gateway identifies itself with (a secret). */
  runtimeToken: string
  /** The administrator token, once (a secret). */
  adminToken: string | null
  /** The one-time sign-in link; null as long as there is no console to sign in to. */
  setupUrl: string | null
  /** Stops accepting, finishes what runs, writes what is left. */
  drain(): Promise<void>
}

const housekeepingMilliseconds = 5000

/** Opens or makes an installation in `settings.data` and serves its API. Throws before it listens, or not at all. */
export async function controlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { settings, clock, newId, log } = options
  const store = await openStore(resolve(settings.data))
  const { state, ledger } = store
  try {
    const masterKey = await loadMasterKey({
      setting: settings.master_key,
      dataDirectory: store.directory,
      ledger,
      randomBytes,
    })
    const announce: Fleet['announce'] = (head, deny) => lanes.fleet.announce(head, deny)
    const recorder = createRecorder({ state, ledger, announce, clock, log })
    const gatewayUrl = settings.gateway_url ?? httpUrl(settings.gateway_listen)
    const shared = { state, ledger, recorder, masterKey, clock, newId, randomBytes }
    const lanes = createFleet({ ...shared, log, settings, baseUrl: () => baseUrl, gatewayUrl: () => gatewayUrl })
    const { fleet } = lanes

    const lastUse = createLastUse(ledger)
    await housekeep(recorder, lastUse, log)
    const installation = await firstStart(shared)
    await registerProvidersFromEnvironment({ ...shared, environment: options.environment })

    const metrics = createControlPlaneMetrics()
    const server = Bun.serve({
      ...listenOn(settings.control_plane_listen),
      idleTimeout: 255,
      fetch: (request) => api.fetch(request),
    })
    const baseUrl = settings.base_url ?? httpUrl(settings.control_plane_listen, server.port)
    let draining = false
    const api = mount({
      routes: [...tokenRoutes({ ...shared, fleet }), ...eventRoutes({ ledger, clock }), ...lanes.routes],
      authenticate: createAuthenticator({ state, ledger, clock, lastUse }),
      answers: createAnswerStore({ ledger, clock }),
      clock,
      newId,
      log,
      baseUrl,
      gatewayUrl,
      gatewayRoutes: gatewayRouteDescriptions,
      ready: () => (draining ? { ok: false, reason: 'The control plane is shutting down' } : { ok: true }),
      metrics: () => metrics.text(),
      answered: metrics.answered,
    })
    const timer = setInterval(() => void housekeep(recorder, lastUse, log), housekeepingMilliseconds)

    await installation.shown()
    return {
      baseUrl,
      stateFile: store.stateFile,
      runtimeToken: installation.runtimeToken,
      adminToken: installation.adminToken,
      setupUrl: null,
      async drain() {
        draining = true
        clearInterval(timer)
        await lanes.close()
        await stopWithin(server, settings.drain_seconds)
        await housekeep(recorder, lastUse, log)
        store.close()
      },
    }
  } catch (error) {
    store.close()
    throw error
  }
}

export interface GatewayOptions {
  settings: Settings
  /** The state database, which another process of this host keeps current. */
  stateFile: string
  clock: Clock
  newId: NewId
  log: Log
}

export interface GatewayProcess {
  url: string
  /** Resolves once requests can be decided. */
  ready(): Promise<void>
  /** Finishes what runs, records it, ships what is left. */
  drain(): Promise<void>
}

/** How often a starting gateway is asked whether it is ready. */
const readinessMilliseconds = 5

/** Serves a gateway from a state file and a control plane's address; it answers `/readyz` before it is ready. */
export async function gateway({ settings, stateFile, clock, newId, log }: GatewayOptions): Promise<GatewayProcess> {
  const apiUrl = required(settings, 'api_url')
  const apiToken = required(settings, 'api_token')
  const lane = await startLane({
    settings,
    stateFile,
    dataDirectory: join(resolve(settings.data), 'gateway'),
    apiUrl,
    apiToken,
    fetch,
    clock,
    newId,
    log,
    onFenced: () => process.exit(1),
  })
  const handler = createGateway({
    lane,
    settings,
    fetch,
    clock: { now: () => lane.now(), monotonic: () => clock.monotonic() },
    newId,
    log,
    documents: { openapi: publicDescription(apiUrl) },
  })
  const server = Bun.serve({
    ...listenOn(settings.gateway_listen),
    idleTimeout: 0,
    // The gateway's own limit comes first and answers in the caller's dialect.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: handler.fetch,
  })
  return {
    url: settings.gateway_url ?? httpUrl(settings.gateway_listen, server.port),
    async ready() {
      while (!lane.ready().ok) await Bun.sleep(readinessMilliseconds)
    },
    async drain() {
      await handler.drain()
      await server.stop(true)
      await lane.drain()
    },
  }
}

function required(settings: Settings, name: SettingName & ('api_url' | 'api_token')): string {
  const value = settings[name]
  if (value !== undefined) return value
  throw new Failure('invalid_parameter', {
    message: `A gateway needs ${environmentName(name)}`,
    param: name,
  })
}

/** The control plane's description, which holds the gateway's routes too, asked for once and kept. */
function publicDescription(apiUrl: string): () => Promise<unknown> {
  let kept: Promise<unknown> | null = null
  const ask = async () => {
    const answer = await fetch(new URL('/v1/openapi.json', apiUrl), { signal: AbortSignal.timeout(5000) })
    if (!answer.ok) throw new Failure('dependency_unavailable')
    return await answer.json()
  }
  return () => {
    kept ??= ask().catch((error: unknown) => {
      kept = null
      throw new Failure('dependency_unavailable', { cause: error })
    })
    return kept
  }
}

async function openStore(directory: string) {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const stateFile = join(directory, 'state.db')
  const state = await openDatabase(stateFile, directory)
  const ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  await migrateState(state)
  await migrateLedger(ledger)
  return {
    directory,
    stateFile,
    state,
    ledger,
    close() {
      state.close()
      ledger.close()
    },
  }
}

/** What is done every few seconds and has nobody to answer to: a failure is logged, and the next turn tries again. */
async function housekeep(recorder: Recorder, lastUse: { flush(): Promise<void> }, log: Log): Promise<void> {
  for (const [what, work] of [
    ['settle', () => recorder.settle()],
    ['last use', () => lastUse.flush()],
  ] as const) {
    try {
      await work()
    } catch (error) {
      log.error({ work: what, error: String(error) }, 'Background work failed and will be tried again')
    }
  }
}

async function stopWithin(server: Bun.Server<undefined>, seconds: number): Promise<void> {
  await Promise.race([server.stop(), Bun.sleep(seconds * 1000)])
  await server.stop(true)
}

function listenOn(address: string): { hostname: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { hostname: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

/** The address under which this host reaches what listens there; all interfaces are reached by the loopback one. */
function httpUrl(address: string, actualPort?: number): string {
  const { hostname, port } = listenOn(address)
  const host =
    { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[hostname] ?? (hostname.includes(':') ? `[${hostname}]` : hostname)
  return `http://${host}:${actualPort ?? port}`
}
