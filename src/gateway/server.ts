/**
 * The gateway as one fetch handler for `Bun.serve`. WebSockets are upgraded here, by Bun's server itself, because
 * Elysia parses frames; every other request goes to its route in `routes.ts`.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import type { Settings } from '../config.ts'
import { Failure, severalHosts } from '../failure.ts'
import type { TargetHealth } from '../fleet/protocol/wire.ts'
import type { GatewayStatus, Journal, Readiness, StateView, WorkerCounters } from '../fleet/protocol/worker.ts'
import { dialects } from '../languages/index.ts'
import type { Clock } from '../lib/clock.ts'
import { namesSeveralHosts, pathOf } from '../lib/http/request-path.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import type { McpServers } from '../mcp/connection.ts'
import { noMcpServers } from '../mcp/no-servers.ts'
import { ToolSearch } from '../mcp/search/tool-search.ts'
import { EndedSessions } from '../mcp/surface/ended-sessions.ts'
import { LateServers } from '../mcp/surface/late-servers.ts'
import { McpSessions } from '../mcp/surface/sessions.ts'
import { gatewayResources } from '../oauth/metadata/protected-resource.ts'
import { OfferedModels } from '../providers/catalog/offered-models.ts'
import { PriceBook } from '../providers/prices/price-book.ts'
import type { Fetch } from '../providers/provider.ts'
import { simulator } from '../providers/simulator/simulator.ts'
import { noTracer, type Tracer } from '../telemetry/tracer.ts'
import type { BatchLedger } from '../usage/batches/batch-protocol.ts'
import { ThreadTokenCounter, type TokenCounter } from '../usage/pricing/token-counter.ts'
import type { Rates } from '../usage/rate/rates.ts'
import type { UsageLimits } from '../usage/usage-limits.ts'
import { JwtCallers } from '../workloads/jwt-callers.ts'
import { createMeter } from './accounting/metrics.ts'
import type { TargetReading } from './accounting/target-metrics.ts'
import { reportTargets } from './accounting/target-report.ts'
import { createMemoryBudget, MemoryBudget } from './admission/memory-budget.ts'
import { type AskControlPlane, SignIn } from './agent-protocol/sign-in.ts'
import { BatchFollower } from './batches/end/batch-follower.ts'
import { AnswerCache } from './cache/answer-cache.ts'
import { watchForDisconnect } from './client-disconnect.ts'
import { closeAfterAnswer } from './connection-close.ts'
import type { Gateway } from './context.ts'
import { failureResponse } from './error-response.ts'
import type { Connection } from './exchange.ts'
import { type Arrival, type GovernedRoute, govern } from './govern.ts'
import { createInFlight } from './in-flight.ts'
import { noSiblings, type SiblingWorkers } from './mcp/sibling-workers.ts'
import { createMcpSurface } from './mcp/surface.ts'
import { frameStages, sessionEventStages, speechStages, turnStages } from './pipeline.ts'
import type { ProcessEndpoint } from './process-endpoints.ts'
import { requestIdOf } from './request-id.ts'
import { createRoutes, dialectOf } from './routes.ts'
import { Shadows } from './shadow/shadows.ts'
import { IntakeLimits } from './telemetry-intake/intake-limits.ts'
import { Circuits } from './upstream/circuit.ts'
import { Targets } from './upstream/targets/targets.ts'
import { createSockets, type SocketHandlers, type SocketListener } from './websocket/handshake.ts'

/** The part of a worker that the gateway itself uses. */
export interface GatewayWorker {
  readonly journal: Journal
  readonly view: StateView
  readonly status: GatewayStatus
  readonly usageLimits: UsageLimits
  readonly rates: Rates
  readonly batches: BatchLedger
  ready(): Readiness
  /** Gauges for `/metrics`, read when it is requested. */
  readonly counters: WorkerCounters
}

export interface GatewayOptions {
  worker: GatewayWorker
  settings: Settings
  fetch: Fetch
  clock: Clock
  newId: NewId
  log: Log
  /** Where spans are exported; by default nowhere. */
  tracer?: Tracer
  documents: { openapi(): Promise<unknown> }
  /** Asks the control plane for whoever signs in at the gateway; by default nobody can. */
  askControlPlane?: AskControlPlane
  /** Counts input with the model's tokenizer; by default in a thread of its own. */
  tokenCounter?: TokenCounter
  /** The metrics of all processes that share the port; by default of this one. */
  allMetrics?(): Promise<string>
  /** The file of answers that the workers of this host share; by default none. */
  cacheFile?: string
  /** The MCP servers behind `/mcp`. */
  mcp?: McpServers
  /** The processes that share the port and may own the requested MCP session; by default none. */
  siblings?: SiblingWorkers
  /** The directory for files that are being read; by default one for temporary files. */
  spoolDirectory?: string
  /** The MCP sessions that have ended; by default in memory only. */
  endedSessions?: EndedSessions
}

/** A server that accepts requests and that a drain stops. */
export type Listener = Connection & Pick<Bun.Server<unknown>, 'stop' | 'pendingRequests'>

export interface GatewayServer {
  /** `undefined` when the connection became a WebSocket. */
  fetch(request: Request, server?: Listener & SocketListener): Promise<Response | undefined> | Response | undefined
  /** A request to `/mcp`, possibly forwarded by a worker that shares the port. */
  answerMcp(request: Request, server: Listener): Promise<Response>
  readonly websocket: SocketHandlers
  /** Loads what would delay the first request to a real provider and everything beside it. */
  warm(): Promise<void>
  /** Ends the running requests of these tokens and their connections (handbook/tokens.md). */
  cutTokens(tokenHashes: readonly string[]): void
  /**
   * Refuses new requests, lets running ones finish within `drain_seconds`, and cuts the rest with a recorded outcome.
   * Then the servers accept nothing more and use the rest of that time to send the answers.
   */
  drain(): Promise<void>
  /** What it measured of its targets, those called most first. */
  targets(): readonly TargetHealth[]
  /** Its metrics as they are now. */
  metrics(): Registry
}

/** Every target that was called, as it is now. */
function* readTargets({ targets, circuits, clock }: Gateway): Generator<TargetReading> {
  const now = clock.monotonic()
  for (const state of targets.all()) {
    yield { state, isOpen: circuits.isOpen(state, now), restingKeys: state.restingKeys(now) }
  }
}

/** For the last frames of a connection to leave, after what it answered was cut. */
const closeGraceMilliseconds = 2500
/** Time for the last answers to leave. A client that does not send its request is not awaited longer. */
const sendGraceMilliseconds = 500
/** The interval of checks whether the last clients have read their answers; there is no event for it. */
const sentMilliseconds = 20

export function createGateway(options: GatewayOptions): GatewayServer {
  const { worker, settings, fetch, clock, newId, log, documents } = options
  const {
    tokenCounter = new ThreadTokenCounter(),
    tracer = noTracer,
    mcp: mcpServers = noMcpServers,
    siblings = noSiblings,
    allMetrics,
    cacheFile = null,
    askControlPlane: ask = () => Promise.reject(new Failure('dependency_unavailable')),
    spoolDirectory = join(tmpdir(), 'gatehouse-uploads'),
    endedSessions: ended = new EndedSessions(),
  } = options
  const meter = createMeter()
  const memory = new MemoryBudget(createMemoryBudget(settings))
  const running = createInFlight(settings, clock, (exchange) => watchForDisconnect(exchange, gateway))
  const prices = new PriceBook()
  const circuits = new Circuits(settings)
  const sessions = new McpSessions({
    most: settings.mcp_sessions,
    idleMilliseconds: 1000 * settings.mcp_session_idle_seconds,
    ended,
  })
  const gateway: Gateway = {
    batches: new BatchFollower(() => gateway),
    spoolDirectory,
    worker,
    prices,
    tokenCounter,
    settings,
    fetch,
    clock,
    newId,
    log,
    meter,
    tracer,
    running,
    memory,
    circuits,
    targets: new Targets({ prices, circuits, clock, random: Math.random }),
    shadows: new Shadows(),
    cache: new AnswerCache(settings, cacheFile, {
      log,
      now: () => clock.now(),
      clears: () => worker.view.cacheClears,
    }),
    offeredModels: new OfferedModels({ fetch, clock, log }),
    jwtCallers: new JwtCallers(),
    draining: false,
    intake: { limits: new IntakeLimits(), waiting: 0 },
    mcp: {
      servers: mcpServers,
      siblings,
      search: new ToolSearch(clock),
      sessions,
      late: new LateServers(sessions),
    },
  }
  const mcp = createMcpSurface(gateway)
  /** What a WebSocket brings is authenticated each time, also when it is an hour old. */
  const onSocket = async (governed: GovernedRoute, arrival: Omit<Arrival, 'connection'>) => {
    await gateway.jwtCallers.admit(arrival.request, gateway)
    return await govern(gateway, governed, { ...arrival, connection: null })
  }
  const ofSession = { route: 'GET /v1/realtime', family: 'realtime', dialect: dialects.realtime }
  const ofSpeech = { ...ofSession, family: 'transcriptions', dialect: dialects.transcriptions }
  const sockets = createSockets(gateway, {
    frame: ({ route, frames }, arrival, conversation) =>
      onSocket({ route, family: frames.family, dialect: frames, stages: frameStages(conversation) }, arrival),
    session: {
      turn: (arrival, session, turn) => onSocket({ ...ofSession, stages: turnStages(session, turn) }, arrival),
      event: (arrival, session, pass) => onSocket({ ...ofSession, stages: sessionEventStages(session, pass) }, arrival),
      speech: (arrival, session, speech) => onSocket({ ...ofSpeech, stages: speechStages(session, speech) }, arrival),
    },
  })

  /** The servers that accept requests: from clients, and from sibling workers if there are any. */
  const listeners = new Set<Listener>()
  const metrics = () =>
    meter.read({
      inFlight: running.size,
      worker: worker.counters,
      memory,
      openCircuits: gateway.circuits.open(clock.monotonic()),
      cachedBytes: gateway.cache.memoryBytes,
      targets: readTargets(gateway),
      spans: tracer.counters,
      mcp: {
        sessions: gateway.mcp.sessions.size,
        unsolicited: mcpServers.unsolicited,
        evicted: gateway.mcp.sessions.evicted,
      },
    })
  const itself: ProcessEndpoint = {
    ready: () => (gateway.draining ? { ok: false, reason: 'draining' } : worker.ready()),
    metrics: allMetrics ?? (() => metrics().metrics()),
    openapi: () => documents.openapi(),
    resources() {
      const { gatewayUrl, baseUrl } = worker.status
      if (baseUrl === '') throw new Failure('not_ready')
      return gatewayResources(gatewayUrl, baseUrl)
    },
    gatewayUrl() {
      const { gatewayUrl, baseUrl } = worker.status
      if (baseUrl === '') throw new Failure('not_ready')
      return gatewayUrl
    },
  }

  /** Requests that are answered without an exchange. */
  const untracked = async (request: Request, answering: Promise<Response> | Response) => {
    const answer = await answering
    return gateway.draining ? await closeAfterAnswer(request, answer) : answer
  }

  /** The answer to a handshake; `undefined` where its connection became a WebSocket. */
  const refused = async (request: Request, refusal: Promise<Response | undefined> | Response) => {
    const answer = await refusal
    return answer === undefined ? undefined : untracked(request, answer)
  }

  const route = createRoutes({
    frameLimit: gateway.settings.answer_limit_bytes,
    itself,
    govern: (governed, arrival) => govern(gateway, governed, arrival),
    signIn: new SignIn({ gatewayUrl: () => worker.status.gatewayUrl, ask, running }),
    mcp: ({ request, connection, requestId }) => mcp.fetch(request, connection, requestId),
    untracked,
  })

  const answer = (
    request: Request,
    server: (Listener & SocketListener) | undefined,
    path: string,
    requestId: string,
  ) => {
    const socketRoute = sockets.routeOf(path, request)
    if (socketRoute !== null) {
      const refusal = sockets.open(socketRoute, request, { server: server ?? null, requestId })
      return refusal === undefined ? undefined : refused(request, refusal)
    }
    return route({ request, connection: server ?? null, requestId })
  }

  return {
    fetch(request, server) {
      if (server !== undefined) listeners.add(server)
      const path = pathOf(request.url)
      const requestId = requestIdOf(request, newId)
      if (namesSeveralHosts(request)) {
        const failure = new Failure('bad_request', { message: severalHosts })
        return untracked(request, failureResponse(dialectOf(path), failure, requestId, null))
      }
      const checking = gateway.jwtCallers.admit(request, gateway)
      return checking === undefined
        ? answer(request, server, path, requestId)
        : checking.then(() => answer(request, server, path, requestId))
    },
    async answerMcp(request, server) {
      listeners.add(server)
      await gateway.jwtCallers.admit(request, gateway)
      return await mcp.fetch(request, server, requestIdOf(request, newId), true)
    },
    async warm() {
      gateway.batches.start()
      if (worker.view.providers().some(({ kind }) => kind !== simulator.kind)) await gateway.prices.load()
    },
    async drain() {
      gateway.draining = true
      gateway.batches.stop()
      gateway.mcp.sessions.drain()
      const until = clock.monotonic() + 1000 * settings.drain_seconds
      const closing = sockets.drain(1000 * settings.drain_seconds + closeGraceMilliseconds)
      await running.drain(1000 * settings.drain_seconds)
      await closing
      mcp.close()
      gateway.cache.close()
      const sent = [...listeners].map((listener) => listener.stop())
      await Promise.race([Promise.all(sent), Bun.sleep(sendGraceMilliseconds)])
      const isRead = () => [...listeners].every(({ pendingRequests }) => pendingRequests === 0)
      while (!isRead() && clock.monotonic() < until) await Bun.sleep(sentMilliseconds)
    },
    websocket: sockets.handlers,
    cutTokens(tokenHashes) {
      running.cutTokens(tokenHashes, worker.status.organizationId)
      sockets.endOf(tokenHashes)
      mcp.endOf(tokenHashes)
    },
    targets: () => reportTargets(readTargets(gateway)),
    metrics,
  }
}
