/**
 * The gateway as one fetch handler for `Bun.serve`: plain routing, because a framework's share of this path is measurable
 * and there are few routes. Requests to models and model discovery run through `stages.ts`; the rest answers for the
 * process itself. Any other path is 404 and never forwarded.
 */
import type { Settings } from '../config.ts'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { dialects } from '../dialects/index.ts'
import { Failure } from '../failure.ts'
import type { Journal, LaneCounters, Standing, StateView } from '../fleet/lane.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { isRequestId } from '../lib/request-id.ts'
import type { Fetch } from '../providers/provider.ts'
import type { Allowances } from '../usage/allowance.ts'
import { type AboutItself, answerAboutItself, isAboutItself } from './about-itself.ts'
import { watchCaller } from './caller.ts'
import { type Beginning, beginExchange, type Gateway } from './exchange.ts'
import { createMeter } from './meter.ts'
import { modelsPath } from './models.ts'
import { failureAnswer, refuse } from './refuse.ts'
import { createRunning } from './running.ts'
import { createSockets, type SocketHandlers, type SocketListener } from './sockets.ts'
import { discoveryStages, frameStages, inferenceStages, type Stage } from './stages.ts'

/** The part of a lane that the gateway itself uses. */
export interface GatewayLane {
  readonly journal: Journal
  readonly view: StateView
  readonly standing: Standing
  readonly allowances: Allowances
  ready(): { ok: boolean; reason?: string }
  /** Gauges for `/metrics`, read when it is asked for. */
  readonly counters: LaneCounters
}

export interface GatewayOptions {
  lane: GatewayLane
  settings: Settings
  fetch: Fetch
  clock: Clock
  newId: NewId
  log: Log
  documents: { openapi(): Promise<unknown> }
}

export interface GatewayServer {
  /** `undefined` where the connection has become a WebSocket. */
  fetch(request: Request, server?: SocketListener): Promise<Response> | Response | undefined
  readonly websocket: SocketHandlers
  /** Ends what runs for these tokens, and their connections (contract section 3, emergency revoke). */
  cutTokens(tokenHashes: readonly string[]): void
  /** Refuses what is new, lets what runs finish within `drain_seconds`, cuts the rest with its outcome recorded. */
  drain(): Promise<void>
  metrics(): string
}

interface GovernedRoute {
  route: string
  family: string
  dialect: Dialect
  stages: readonly Stage[]
}

const inferenceRoutes: ReadonlyMap<string, GovernedRoute> = new Map(
  dialects.map((dialect) => [
    dialect.route.slice(dialect.route.indexOf(' ') + 1),
    { route: dialect.route, family: dialect.family, dialect, stages: inferenceStages },
  ]),
)

const discovery: GovernedRoute = {
  route: `GET ${modelsPath}`,
  family: 'models',
  dialect: chat,
  stages: discoveryStages,
}

/** For the last frames of a connection to leave, after what it answered was cut. */
const closeGraceMilliseconds = 2500

export function createGateway(options: GatewayOptions): GatewayServer {
  const { lane, settings, fetch, clock, newId, log, documents } = options
  const meter = createMeter()
  const running = createRunning(settings, clock, (exchange) => watchCaller(exchange, gateway))
  const gateway: Gateway = { lane, settings, fetch, clock, newId, log, meter, running }
  let draining = false
  const sockets = createSockets(gateway, ({ route, frames }, arrival) =>
    govern(
      gateway,
      { route, family: frames.family, dialect: frames, stages: frameStages },
      { ...arrival, connection: null, draining: false },
    ),
  )

  const metrics = () => meter.text(running.size, lane.counters)
  const itself: AboutItself = {
    ready: () => (draining ? { ok: false, reason: 'draining' } : lane.ready()),
    metrics,
    openapi: () => documents.openapi(),
  }

  return {
    fetch(request, server) {
      const path = pathOf(request.url)
      const requestId = requestIdOf(request, newId)
      const socketRoute = sockets.routeOf(path, request)
      if (socketRoute !== null) {
        return sockets.open(socketRoute, request, { server: server ?? null, requestId, draining })
      }
      const governed = inferenceRoutes.get(path) ?? (isModelsPath(path) ? discovery : undefined)
      const wanted = governed?.route.startsWith('POST') ? 'POST' : 'GET'
      if (governed === undefined && !isAboutItself(path)) {
        return failureAnswer(chat, new Failure('not_found'), requestId, null)
      }
      // RFC 9110 section 9.1: what answers GET answers HEAD; the server leaves the body out.
      const isHead = request.method === 'HEAD' && governed === undefined
      if (request.method !== wanted && !isHead) {
        const failed = failureAnswer(chat, new Failure('method_not_allowed'), requestId, null)
        failed.headers.set('allow', wanted)
        return failed
      }
      if (governed === undefined) return answerAboutItself(itself, path, requestId)
      return govern(gateway, governed, { request, connection: server ?? null, requestId, draining })
    },
    cutTokens(tokenHashes) {
      running.cutTokens(tokenHashes, lane.standing.organizationId)
      sockets.endOf(tokenHashes)
    },
    async drain() {
      draining = true
      const closing = sockets.drain(1000 * settings.drain_seconds + closeGraceMilliseconds)
      await running.drain(1000 * settings.drain_seconds)
      await closing
    },
    websocket: sockets.handlers,
    metrics,
  }
}

interface Arrival extends Pick<Beginning, 'request' | 'connection' | 'requestId' | 'body'> {
  draining: boolean
}

/** Takes one request through its stages. Whatever they throw is answered and recorded; nothing escapes. */
async function govern(
  gateway: Gateway,
  { route, family, dialect, stages }: GovernedRoute,
  { draining, ...arrival }: Arrival,
): Promise<Response> {
  // Before its first bootstrap a gateway does not know who it is, and an event of nobody's could not be taken in.
  if (gateway.lane.standing.gatewayId === '') {
    return failureAnswer(dialect, new Failure('not_ready'), arrival.requestId, 'error')
  }
  const exchange = beginExchange({ ...arrival, route, family, dialect }, gateway)
  gateway.running.add(exchange)
  try {
    if (draining) throw new Failure('draining')
    for (const stage of stages) {
      const pending = stage(exchange, gateway)
      if (pending !== undefined) await pending
    }
    if (exchange.answer !== null) return exchange.answer
    throw new Failure('internal', { cause: new Error(`The stages of ${route} made no answer`) })
  } catch (thrown) {
    return await refuse(exchange, gateway, thrown)
  } finally {
    if (!exchange.streaming) gateway.running.remove(exchange)
  }
}

const isModelsPath = (path: string): boolean =>
  path === modelsPath || (path.startsWith(`${modelsPath}/`) && path.length > modelsPath.length + 1)

/** The path of an absolute URL, without making a URL object of it. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** The caller's own label where it has the form of one, otherwise a new one (contract section 2). */
function requestIdOf(request: Request, newId: NewId): string {
  const given = request.headers.get('x-request-id')
  return given !== null && isRequestId(given) ? given : newId()
}
