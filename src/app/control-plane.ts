/**
 * The control plane's composition root: opens what it needs, connects the parts, mounts their routes and says how to
 * stop. Besides `gateway.ts` the only place that knows every part.
 */

import { resolve } from 'node:path'
import { createAnswerStore } from '../api/answer-store.ts'
import { type ApplicationOptions, createApplication } from '../api/application.ts'
import { verifyRounds } from '../events/verify/background.ts'
import { listenOn, localUrl } from '../lib/http/listen.ts'
import { pathOf, withAddress } from '../lib/http/request-path.ts'
import { Rounds } from '../lib/rounds.ts'
import { recordAccessRefusal } from '../members/access-refusal.ts'
import { createSessionAuthenticator } from '../members/sessions/authenticate-session.ts'
import { ownOrigins } from '../members/sessions/session-cookie.ts'
import { makeSetupLink, ownerAwaitingSetup } from '../members/sessions/setup-link.ts'
import { registerProvidersFromEnvironment } from '../providers/catalog/register-providers.ts'
import { uncollected } from '../store/transaction.ts'
import { createAuthenticator } from '../tokens/authenticate.ts'
import { lookForRotation } from '../tokens/runtime/sealed-runtime-token.ts'
import { keyRefresher } from '../workloads/refresh-keys.ts'
import { alertRounds } from './alerts.ts'
import { type ControlPlaneOptions, connectParts, type Parts } from './control-plane-parts.ts'
import { finishInterruptedWork, housekeep, mergingRounds, recheckingRounds } from './housekeeping.ts'
import { openStore } from './store.ts'
import { Watch } from './watch.ts'

export interface ControlPlane {
  baseUrl: string
  /** The state database for a gateway on this host; null if it is on a server. */
  stateFile: string | null
  /** That gateway's runtime token (a secret). */
  runtimeToken: string
  /** The administrator token, once (a secret). */
  adminToken: string | null
  /** A one-time link with which the owner sets a password, until an owner has one (a secret in its fragment). */
  setupUrl: string | null
  /** Call once the administrator token was delivered. Until then each start returns it again. */
  shown(): Promise<void>
  /** Stops accepting, finishes running calls, writes what is left. */
  drain(): Promise<void>
}

const housekeepingMilliseconds = 5000

/**
 * Opens or makes an installation in `settings.data` and serves its API. It listens as soon as a gateway can be told
 * what it needs, so that both start at the same time; what is called before the rest is done waits for that.
 */
export async function controlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const directory = resolve(options.settings.data)
  const store = await openStore(options.settings, directory, options.clock.now)
  let listener: Listener | null = null
  try {
    const parts = await connectParts(options, store)
    const { installation, shared } = parts
    listener = listen(options, parts)
    await finishInterruptedWork(parts, options.log)
    await registerProvidersFromEnvironment({ ...shared, environment: options.environment })
    await parts.workers.prepare()
    const served = serve(options, parts, listener)
    await parts.workers.start()
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
    void listener?.server.stop(true)
    store.close()
    throw error
  }
}

type Application = ReturnType<typeof createApplication>

interface Listener {
  server: Bun.Server<undefined>
  /** Answers the calls from now on, those first that have waited for it. */
  answer(fetch: (request: Request) => Promise<Response>): void
}

/** Listens, and tells the gateway on this host what it needs. */
function listen({ settings, onListening }: ControlPlaneOptions, parts: Parts): Listener {
  const { addresses, callers } = parts
  const answering = Promise.withResolvers<(request: Request) => Promise<Response>>()
  const server = Bun.serve({
    ...listenOn(settings.control_plane_listen),
    idleTimeout: 255,
    development: false,
    async fetch(request, server) {
      const addressed = withAddress(request)
      callers.set(addressed, server.requestIP(request)?.address ?? 'unknown')
      const answer = await answering.promise
      return await answer(addressed)
    },
  })
  addresses.base ||= localUrl(settings.control_plane_listen, server.port)
  addresses.console ||= `${addresses.base}/console`
  onListening({ api_token: parts.installation.runtimeToken, state_file: parts.stateFile })
  return { server, answer: answering.resolve }
}

/** Makes the API over the parts and answers with it. */
function serve(
  { settings, clock, newId, log, onRuntimeToken }: ControlPlaneOptions,
  parts: Parts,
  { server, answer }: Listener,
): { drain(): Promise<void> } {
  const { shared, workers, metrics, addresses, oauth, exports, lastUse, proof, sinks } = parts
  const { state, ledger } = shared
  const origins = () => ownOrigins(addresses.base, addresses.console)
  const bySession = createSessionAuthenticator({ ledger, clock, settings, origins, baseUrl: oauth.baseUrl })
  const byToken = createAuthenticator({ state, ledger, clock, lastUse, baseUrl: oauth.baseUrl })
  let draining = false
  const options: Omit<ApplicationOptions, 'features'> = {
    authenticate: (request) =>
      uncollected(
        async () =>
          watch.authenticate(request) ??
          (await workers.authenticate(request)) ??
          (await bySession(request)) ??
          (await byToken(request)),
      ),
    answers: createAnswerStore({ ledger, clock, key: shared.masterKey.derive('gatehouse idempotent calls') }),
    clock,
    newId,
    log,
    baseUrl: addresses.base,
    gatewayUrl: addresses.gateway,
    gatewayRoutes: async () => (await import('../gateway/openapi/http-routes.ts')).gatewayRouteDescriptions,
    ready: () =>
      draining
        ? { ok: false, reason: 'The control plane is shutting down' }
        : { ok: true, reason: workers.readinessWarning() ?? undefined },
    metrics: () => metrics.text(),
    refused: ({ principal, requestId, route, permission }) =>
      recordAccessRefusal(shared, { principal, requestId }, { route, permission }),
    answered: metrics.answered,
  }
  // Gateways connect at a start: what they need is an application of its own. The whole is loaded when it is called.
  const runtime = createApplication({ ...options, features: workers.routes })
  const runtimePaths = new Set([...runtime.routes.map(({ path }) => path).filter(isOfRuntime), '/healthz', '/readyz'])
  let made: Promise<Application> | null = null
  const makeWhole = async (): Promise<Application> => {
    const { features } = await import('./features.ts')
    const answered = async (request: Request): Promise<Response> => await (await whole()).fetch(request)
    return createApplication({ ...options, features: await features(parts, onRuntimeToken, answered) })
  }
  const whole = (): Promise<Application> => {
    made ??= makeWhole()
    return made
  }
  const watch = new Watch(parts, async (request) => await (await whole()).fetch(request), log)
  answer(async (request) => {
    const application = runtimePaths.has(pathOf(request.url)) ? runtime : await whole()
    return await application.fetch(request)
  })
  const rotated = lookForRotation(shared, parts.installation.runtimeToken, onRuntimeToken)
  const issuerKeys = keyRefresher({ ...shared, fetch, plainHttp: settings.plain_http_providers, log })
  const housekeeping = new Rounds(housekeepingMilliseconds, () => housekeep({ ...parts, rotated, issuerKeys }, log))
  housekeeping.start()
  const merging = mergingRounds(
    ledger,
    log,
    parts.moving === null ? undefined : { ...parts.moving, clock: shared.clock },
  )
  merging.start()
  const rechecking = recheckingRounds(parts, log)
  rechecking.start()
  const verifying = verifyRounds({ ...shared, settings, seen: proof.seen })
  verifying.start()
  watch.start()
  const alerting = alertRounds(parts, log)
  alerting.start()
  proof.start()
  sinks.start()
  return {
    async drain() {
      draining = true
      await Promise.all([
        housekeeping.stop(),
        merging.stop(),
        rechecking.stop(),
        watch.stop(),
        alerting.stop(),
        verifying.stop(),
      ])
      await (await exports()).stop()
      await proof.stop()
      await sinks.stop()
      await workers.close()
      await stopWithin(server, settings.drain_seconds)
      await housekeep(parts, log)
    },
  }
}

const isOfRuntime = (path: string): boolean => path.startsWith('/v1/gateway-runtime/')

async function setupUrl({ shared, addresses }: Parts): Promise<string | null> {
  const userId = await ownerAwaitingSetup(shared.ledger)
  if (userId === null) return null
  return (await makeSetupLink({ ...shared, userId, consoleUrl: addresses.console })).url
}

async function stopWithin(server: Bun.Server<undefined>, seconds: number): Promise<void> {
  await Promise.race([server.stop(), Bun.sleep(seconds * 1000)])
  await server.stop(true)
}
