/**
 * The control plane's composition root: opens what it needs, hands it to the parts, mounts their routes and says how to
 * stop. With `gateway.ts` beside it, the only place that knows every part.
 */
import { randomBytes } from 'node:crypto'
import { join, resolve } from 'node:path'
import { createAnswerStore } from '../api/idempotency.ts'
import { mount } from '../api/mount.ts'
import type { Settings } from '../config.ts'
import { consoleRoutes } from '../console/routes.ts'
import { escalationRoutes } from '../escalations/routes.ts'
import { createRecorder } from '../events/change.ts'
import { createExportRunner } from '../events/export/export-runner.ts'
import { createProof } from '../events/proof/proof.ts'
import type { Recorder } from '../events/recorder.ts'
import { eventRoutes } from '../events/routes.ts'
import { connectedLanes } from '../fleet/coordinator/connected-workers.ts'
import { createFleet } from '../fleet/coordinator/coordinator.ts'
import type { Fleet } from '../fleet/coordinator/fleet.ts'
import type { Clock } from '../lib/clock.ts'
import { listenOn, localUrl } from '../lib/http/listen.ts'
import { withAddress } from '../lib/http/request-path.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import { Rounds } from '../lib/rounds.ts'
import { mcpServerRoutes } from '../mcp/catalog/server-routes.ts'
import { mcpOfferRoutes } from '../mcp/offers/offer-routes.ts'
import { recordAccessRefusal } from '../members/access-refusal.ts'
import { firstStart } from '../members/first-start.ts'
import { memberRoutes } from '../members/routes.ts'
import { createSessionAuthenticator, sessionOf } from '../members/sessions/authenticate-session.ts'
import { ownOrigins } from '../members/sessions/session-cookie.ts'
import { makeSetupLink, ownerAwaitingSetup } from '../members/sessions/setup-link.ts'
import type { OAuthDependencies } from '../oauth/dependencies.ts'
import { delegationsOf } from '../oauth/follow-person.ts'
import { oauthRoutes } from '../oauth/routes.ts'
import { resolveHost } from '../policies/resolve-host.ts'
import { policyRoutes } from '../policies/routes.ts'
import { registerProvidersFromEnvironment } from '../providers/catalog/register-providers.ts'
import { priceRoutes } from '../providers/prices/price-routes.ts'
import { catalogRoutes } from '../providers/routes.ts'
import { loadMasterKey } from '../store/keys/master-key.ts'
import { type ControlPlaneMetrics, createControlPlaneMetrics } from '../telemetry/metrics.ts'
import { createAuthenticator } from '../tokens/authenticate.ts'
import { alertThresholds } from '../tokens/limits/alerts.ts'
import { createLastUse } from '../tokens/limits/last-use.ts'
import { tokenRoutes } from '../tokens/routes.ts'
import { lookForRotation } from '../tokens/runtime/sealed-runtime-token.ts'
import { depletionView } from '../usage/api/depletion.ts'
import { excessRoutes } from '../usage/api/excess-routes.ts'
import { limitRoutes } from '../usage/api/limit-routes.ts'
import { rateRoutes } from '../usage/api/rate-routes.ts'
import { usageRoutes } from '../usage/api/usage-routes.ts'
import { housekeep, settle } from './housekeeping.ts'
import { openStore, type Store } from './store.ts'

export interface ControlPlaneOptions {
  settings: Settings
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  newId: NewId
  log: Log
  /** Told, as soon as calls are taken in, what a gateway on this host needs in order to start meanwhile. */
  onListening(gateway: { api_token: string; state_file: string | null }): void
  /** Told the new secret when the runtime token of the gateway on this host is rotated. */
  onRuntimeToken(secret: string): void
}

export interface ControlPlane {
  baseUrl: string
  /** The state database, for a gateway on this host to read; null where it is on a server. */
  stateFile: string | null
  /** What that gateway identifies itself with (a secret). */
  runtimeToken: string
  /** The administrator token, once (a secret). */
  adminToken: string | null
  /** A one-time link by which the owner sets a password, until an owner has one (a secret in its fragment). */
  setupUrl: string | null
  /** To be called once the administrator token is with whom it is for; until then each start gives it again. */
  shown(): Promise<void>
  /** Stops accepting, finishes what runs, writes what is left. */
  drain(): Promise<void>
}

const housekeepingMilliseconds = 5000

/** Opens or makes an installation in `settings.data` and serves its API. Throws before it listens, or not at all. */
export async function controlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const directory = resolve(options.settings.data)
  const store = await openStore(options.settings, directory, options.clock.now)
  try {
    const parts = await wire(options, store)
    const { installation, shared } = parts
    await settle(parts, options.log)
    await registerProvidersFromEnvironment({ ...shared, environment: options.environment })
    await parts.lanes.prepare()
    const served = serve(options, parts)
    await parts.lanes.start()
    return {
      baseUrl: parts.addresses.base,
      stateFile: parts.stateFile,
      runtimeToken: installation.runtimeToken,
      adminToken: installation.adminToken,
      setupUrl: await setupUrl(parts),
      shown: () => installation.shown(),
      async drain() {
        await served.drain()
        store.close()
      },
    }
  } catch (error) {
    store.close()
    throw error
  }
}

/** The parts that stand behind the routes. The base address is filled in when the listener has its port. */
async function wire({ settings, clock, newId, log }: ControlPlaneOptions, { state, ledger, source }: Store) {
  const masterKey = await loadMasterKey({
    setting: settings.master_key,
    dataDirectory: resolve(settings.data),
    ledger,
    randomBytes,
  })
  const addresses = {
    base: settings.base_url ?? '',
    gateway: settings.gateway_url ?? localUrl(settings.gateway_listen),
    console: settings.console_url ?? '',
  }
  const metrics = createControlPlaneMetrics({
    connectedLanes: () => connectedLanes(ledger),
    stateReads: () => lanes.stateReads(),
  })
  const callers = new WeakMap<Request, string>()
  const lanes = createFleet({
    meter: metrics,
    state,
    ledger,
    source,
    masterKey,
    clock,
    newId,
    randomBytes,
    log,
    settings,
    peerUrl: () => settings.peer_url ?? addresses.base,
    addressOf: (request) => callers.get(request) ?? 'unknown',
    baseUrl: () => addresses.base,
    gatewayUrl: () => addresses.gateway,
    recorder: () => recorder,
  })
  lanes.fleet = timed(lanes.fleet, metrics, clock)
  const recorder: Recorder = createRecorder({
    ...{ state, ledger, announce: lanes.fleet.announce, clock, log },
    environment: settings.environment,
  })
  const shared = {
    ...{ state, ledger, recorder, masterKey, clock, newId, randomBytes, log },
    depletion: depletionView(ledger, (accounts) => lanes.usage.authority.callBack(accounts)),
    alerts: alertThresholds(settings),
  }
  const oauth: OAuthDependencies = {
    ...{ state, ledger, recorder, clock, newId, randomBytes, log, settings },
    fleet: lanes.fleet,
    baseUrl: () => addresses.base,
    gatewayUrl: () => addresses.gateway,
    consoleUrl: () => addresses.console,
  }
  const installation = await firstStart(shared)
  const directory = resolve(settings.data)
  const exports = createExportRunner({
    ...shared,
    settings,
    directory: join(directory, 'exports'),
    address: () => addresses.base,
  })
  const proof = await createProof({
    ...{ state, ledger, clock, log, settings },
    dataDirectory: directory,
    announce: (head) => lanes.fleet.announce(head, [], []),
  })
  return {
    shared,
    lanes,
    metrics,
    addresses,
    callers,
    oauth,
    installation,
    stateFile: 'file' in source ? source.file : null,
    exports,
    proof,
    lastUse: createLastUse(ledger),
    settings,
  }
}

export type Parts = Awaited<ReturnType<typeof wire>>

function serve(
  { settings, clock, newId, log, onListening, onRuntimeToken }: ControlPlaneOptions,
  parts: Parts,
): { drain(): Promise<void> } {
  const { shared, lanes, metrics, addresses, callers, oauth, exports, lastUse, proof } = parts
  const { state, ledger } = shared
  const server = Bun.serve({
    ...listenOn(settings.control_plane_listen),
    idleTimeout: 255,
    development: false,
    fetch(request, server) {
      const addressed = withAddress(request)
      callers.set(addressed, server.requestIP(request)?.address ?? 'unknown')
      return api.fetch(addressed)
    },
  })
  addresses.base ||= localUrl(settings.control_plane_listen, server.port)
  addresses.console ||= `${addresses.base}/console`
  onListening({ api_token: parts.installation.runtimeToken, state_file: parts.stateFile })
  const origins = () => ownOrigins(addresses.base, addresses.console)
  const bySession = createSessionAuthenticator({ ledger, clock, settings, origins, baseUrl: oauth.baseUrl })
  const byToken = createAuthenticator({ state, ledger, clock, lastUse, baseUrl: oauth.baseUrl })
  let draining = false
  const api = mount({
    routes: [
      ...tokenRoutes({ ...shared, fleet: lanes.fleet, onRuntimeToken }),
      ...memberRoutes({
        ...shared,
        fleet: lanes.fleet,
        settings,
        baseUrl: oauth.baseUrl,
        consoleUrl: oauth.consoleUrl,
        delegations: delegationsOf(oauth),
        addressOf: (request) => callers.get(request) ?? 'unknown',
      }),
      ...oauthRoutes(oauth),
      ...limitRoutes(shared),
      ...catalogRoutes({ ...shared, plainHttp: settings.plain_http_providers }),
      ...mcpServerRoutes({ ...shared, plainHttp: settings.plain_http_providers }),
      ...mcpOfferRoutes(shared),
      ...priceRoutes(shared),
      ...eventRoutes({ ...shared, exports }),
      ...proof.routes,
      ...escalationRoutes({ ...shared, settings }),
      ...policyRoutes({ ...shared, policyTools: policyTools(settings) }),
      ...rateRoutes(shared),
      ...usageRoutes({ ...shared, freed: (accounts) => lanes.usage.authority.changed(accounts) }),
      ...excessRoutes(shared),
      ...lanes.routes,
      ...consoleRoutes({
        baseUrl: () => addresses.base,
        gatewayUrl: () => addresses.gateway,
        consoleUrl: () => addresses.console,
        isSignedIn: async (request) =>
          (await sessionOf(request, { ledger, clock, settings, baseUrl: oauth.baseUrl })).session !== null,
        isSetUp: async () => (await ownerAwaitingSetup(ledger)) === null,
      }),
    ],
    authenticate: async (request) =>
      (await lanes.authenticate(request)) ?? (await bySession(request)) ?? (await byToken(request)),
    answers: createAnswerStore({ ledger, clock, key: shared.masterKey }),
    clock,
    newId,
    log,
    baseUrl: addresses.base,
    gatewayUrl: addresses.gateway,
    gatewayRoutes: async () => (await import('../gateway/openapi/http-routes.ts')).gatewayRouteDescriptions,
    ready: () =>
      draining
        ? { ok: false, reason: 'The control plane is shutting down' }
        : { ok: true, reason: lanes.trouble() ?? undefined },
    metrics: () => metrics.text(),
    refused: ({ principal, requestId, route, permission }) =>
      recordAccessRefusal(shared, { principal, requestId }, { route, permission }),
    answered: metrics.answered,
  })
  const rotated = lookForRotation(shared, parts.installation.runtimeToken, onRuntimeToken)
  const housekeeping = new Rounds(housekeepingMilliseconds, () => housekeep({ ...parts, rotated }, log))
  housekeeping.start()
  proof.start()
  return {
    async drain() {
      draining = true
      await housekeeping.stop()
      await exports.stop()
      await proof.stop()
      await lanes.close()
      await stopWithin(server, settings.drain_seconds)
      await housekeep(parts, log)
    },
  }
}

/** A fleet whose propagations are timed. */
const timed = (fleet: Fleet, metrics: Pick<ControlPlaneMetrics, 'propagated'>, clock: Clock): Fleet => ({
  ...fleet,
  async propagation(version) {
    const began = clock.monotonic()
    const propagation = await fleet.propagation(version)
    metrics.propagated((clock.monotonic() - began) / 1000)
    return propagation
  },
})

async function setupUrl({ shared, addresses }: Parts): Promise<string | null> {
  const userId = await ownerAwaitingSetup(shared.ledger)
  if (userId === null) return null
  return (await makeSetupLink({ ...shared, userId, consoleUrl: addresses.console })).url
}

/** What policies may use of the world where they are tried. */
const policyTools = ({ webhook_addresses }: Settings) => ({
  fetch,
  resolve: resolveHost,
  privateWebhooks: webhook_addresses === 'any',
})

async function stopWithin(server: Bun.Server<undefined>, seconds: number): Promise<void> {
  await Promise.race([server.stop(), Bun.sleep(seconds * 1000)])
  await server.stop(true)
}
