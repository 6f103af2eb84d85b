/**
 * The gateway's composition root: a worker, the hot path on it, and the listener. It loads no part of the control
 * plane.
 */
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { environmentName, type SettingName, type Settings } from '../config.ts'
import { Failure } from '../failure.ts'
import { startWorker, type WorkerOptions } from '../fleet/agent/gateway-agent.ts'
import { type ReplicatorCommand, replicaFile } from '../fleet/agent/worker-replica.ts'
import { compileSecrets } from '../gateway/accounting/redaction.ts'
import { type AskControlPlane, answerMilliseconds } from '../gateway/agent-protocol/sign-in.ts'
import { emptySpool } from '../gateway/batches/upload/spool.ts'
import { createGateway } from '../gateway/server.ts'
import type { Clock } from '../lib/clock.ts'
import { canSharePort } from '../lib/host/platform.ts'
import { listenOn, localUrl } from '../lib/http/listen.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import { type Worker, workerDirectory } from '../lib/worker.ts'
import { GatewayMcpServers } from '../mcp/servers/servers.ts'
import { EndedSessions } from '../mcp/surface/ended-sessions.ts'
import { loadOtlpExporter } from '../telemetry/otlp.ts'
import { createTracer, noTracer, type Tracer } from '../telemetry/tracer.ts'
import { joinSiblings } from './siblings.ts'

export interface GatewayProcessOptions {
  settings: Settings
  /** The state database if another process of this host maintains it; null for a replica of the primary. */
  stateFile: string | null
  /** The command line of the replicator. */
  replicator: readonly string[]
  position: Worker
  clock: Clock
  newId: NewId
  log: Log
}

export interface GatewayProcess {
  url: string
  /** Resolves once requests can be decided. */
  ready(): Promise<void>
  /** Resolves, with the reason, if this process has to end and a restart would not help. */
  readonly over: Promise<Failure>
  /** Finishes running requests, records them, ships what is left. */
  drain(): Promise<void>
}

/** How long a stopping gateway waits for its trace collector. */
const closeTracesMilliseconds = 2000

const takenOver =
  'Another gateway has taken over this instance: where its data directory was copied, remove gateway/worker in this one'

/** Serves a gateway from a state file and a control plane's address. It answers `/readyz` before it is ready. */
export async function gateway({
  settings,
  stateFile,
  replicator,
  position,
  clock,
  newId,
  log,
}: GatewayProcessOptions): Promise<GatewayProcess> {
  // A gateway parses each form of message a few times a second at most. Compiled parsers, which zod makes at the first
  // use, would cost more at the start than they ever save.
  z.config({ jitless: true })
  requireSharedPort(position.count)
  const apiUrl = required(settings, 'api_url')
  const apiToken = required(settings, 'api_token')
  const data = resolve(settings.data)
  const directory = join(data, 'gateway')
  const over = Promise.withResolvers<Failure>()
  const worker = await startWorker({
    settings,
    ...stateSource(stateFile, position, directory, { command: replicator, dataDirectory: data }),
    dataDirectory: workerDirectory(directory, position.index),
    apiUrl,
    apiToken,
    fetch,
    clock,
    newId,
    log,
    onFenced: () => over.resolve(new Failure('worker_fenced', { message: takenOver })),
    onRetired: () => process.exit(1),
  })
  const spoolDirectory = join(workerDirectory(directory, position.index), 'uploads')
  emptySpool(spoolDirectory)
  const tracer = tracerOf(settings, clock, log)
  const workerClock: Clock = { now: () => worker.now(), monotonic: () => clock.monotonic() }
  const mcp = new GatewayMcpServers({
    source: worker.mcp,
    ...{ settings, fetch, log },
    clock: workerClock,
    path: process.env.PATH ?? '',
    random: Math.random,
  })
  const siblings =
    position.count > 1
      ? joinSiblings({
          worker: position,
          directory,
          secret: randomText(32),
          start: randomText(9),
          own: () => handler.metrics(),
          answer: (request, server) => handler.answerMcp(request, server),
        })
      : null
  const handler = createGateway({
    worker,
    mcp,
    tracer,
    settings,
    fetch,
    clock: workerClock,
    newId,
    log,
    documents: { openapi: publicDescription(apiUrl) },
    cacheFile: join(directory, 'answers.db'),
    askControlPlane: formsTo(apiUrl),
    spoolDirectory,
    endedSessions: new EndedSessions({
      own: workerDirectory(directory, position.index),
      all: Array.from({ length: position.count }, (_, index) => workerDirectory(directory, index)),
    }),
    ...(siblings !== null && { allMetrics: siblings.metrics, siblings: siblings }),
  })
  worker.reportTargets(() => handler.targets())
  worker.onEndRequests((hashes) => handler.cutTokens(hashes))
  const server = Bun.serve({
    ...listenOn(settings.gateway_listen),
    reusePort: position.count > 1,
    development: false,
    // The gateway's own limit comes first and answers in the caller's dialect.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) => handler.fetch(request, server),
    websocket: handler.websocket,
  })
  return {
    over: over.promise,
    url: settings.gateway_url ?? localUrl(settings.gateway_listen, server.port),
    async ready() {
      await worker.untilReady()
      await handler.warm()
      setTimeout(compileSecrets)
    },
    async drain() {
      await handler.drain()
      siblings?.close()
      await server.stop(true)
      await Promise.all([mcp.close(), worker.drain(), tracer.close(closeTracesMilliseconds)])
    },
  }
}

function requireSharedPort(workers: number): void {
  if (workers === 1 || canSharePort) return
  throw new Failure('invalid_parameter', {
    param: 'gateway_workers',
    message: 'More than one gateway worker needs Linux, where the kernel spreads connections over them: set it to 1',
  })
}

const randomText = (bytes: number): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64url')

/** A sidecar's first worker keeps the replica that all its workers read. */
const stateSource = (
  stateFile: string | null,
  position: Worker,
  directory: string,
  replicator: ReplicatorCommand,
): Pick<WorkerOptions, 'stateFile' | 'replicator'> => {
  if (stateFile !== null) return { stateFile }
  return position.index === 0 ? { stateFile, replicator } : { stateFile: replicaFile(directory) }
}

/** Without a collector nothing is loaded and nothing is traced. */
function tracerOf(
  { otlp_endpoint: endpoint, otlp_headers: headers, environment, trace_sample_percent }: Settings,
  clock: Clock,
  log: Log,
): Tracer {
  if (endpoint === undefined) return noTracer
  return createTracer({
    load: () => loadOtlpExporter({ endpoint, headers, environment }),
    samplePercent: trace_sample_percent,
    random: Math.random,
    clock,
    log,
  })
}

function required(settings: Settings, name: SettingName & ('api_url' | 'api_token')): string {
  const value = settings[name]
  if (value !== undefined) return value
  throw new Failure('invalid_parameter', {
    message: `A gateway needs ${environmentName(name)}`,
    param: name,
  })
}

/** Passes the forms of those who sign in here on to the control plane. */
const formsTo =
  (apiUrl: string): AskControlPlane =>
  (path, body, requestId) =>
    fetch(new URL(path, apiUrl), {
      method: 'POST',
      body,
      headers: { 'x-request-id': requestId },
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMilliseconds),
    })

/** The control plane's API description, which has the gateway's routes too; fetched once and kept. */
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
