/**
 * The change stream of a worker (fleet/README.md). Opening it takes the worker over. The order matters: the worker is
 * added to the registry, so that changes reach it from now on; its row is committed; then the head is read and sent as
 * the handshake. Changes that arrive in between wait behind it.
 */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { Failure } from '../../../failure.ts'
import type { Principal } from '../../../identity/principal.ts'
import { timestamp } from '../../../lib/clock.ts'
import type { Head } from '../../../store/propagation.ts'
import type { TransactionCount } from '../../../usage/lease/ledger-epoch.ts'
import {
  type AnnouncedHead,
  type StreamMessage,
  type StreamQuery,
  staleAfterMs,
  streamCommentMs,
  streamMessageSchema,
  streamQuerySchema,
  workerName,
} from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import type { FleetOptions } from '../options.ts'
import type { Worker, WorkerRegistry, WorkerStream } from '../worker-registry.ts'

/** How many messages may wait for a worker that does not read, before its stream is closed. */
const maxWaiting = 10_000

export interface StreamDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  stateHead: StateHead
  chainHead(chain: string): Promise<AnnouncedHead>
  /** The worker's row is committed: informs former owners, and compares the worker's ledger epoch. */
  onTaken(
    worker: Worker,
    known: { forgotten: boolean; acknowledged: number; epoch: readonly TransactionCount[] },
  ): Promise<void>
  /** The worker is sent this head. */
  onHello(worker: Worker, head: Head): Promise<void>
}

export function streamRoute(dependencies: StreamDependencies) {
  return new Elysia({ name: 'runtime stream' })
    .use(conventions)
    .get(
      '/v1/gateway-runtime/stream',
      async ({ principal, query, request: { signal } }) => openStream(dependencies, principal, query, signal),
      {
        access: 'runtime:session',
        internal: true,
        query: streamQuerySchema,
        response: streamMessageSchema,
        detail: { tags: ['Gateway runtime'], summary: 'Take a worker over and follow the changes of the state' },
      },
    )
}

async function openStream(
  dependencies: StreamDependencies,
  principal: Principal,
  {
    worker: workerNumber,
    process = '',
    since,
    acknowledged = 0,
    ledger_epoch: epoch = [],
    stale_after_ms: said,
  }: StreamQuery,
  signal: AbortSignal,
): Promise<Response> {
  const { options, registry, stateHead } = dependencies
  const { gatewayId, instanceId, tokenId } = sessionOf(principal)
  const { max_staleness_seconds: maxStaleness } = options.settings
  const name = workerName(gatewayId, instanceId, workerNumber)
  const { stream, body, hello } = openBody(() => {
    if (worker.stream === stream) worker.stream = null
  })
  const worker: Worker = {
    worker: name,
    gatewayId,
    instanceId,
    workerNumber,
    tokenId,
    streamId: options.newId(),
    process,
    stream,
    acknowledgedVersion: 0,
    lastHeartbeatAt: null,
    staleAfterMs: said === undefined ? null : Math.max(said, staleAfterMs(maxStaleness)),
  }
  try {
    const { takenAt, forgotten } = await registry.takeOver(worker, () => !signal.aborted, since ?? null)
    await dependencies.onTaken(worker, { forgotten, acknowledged, epoch })
    const head = await stateHead.read()
    await dependencies.onHello(worker, head)
    hello({
      kind: 'handshake',
      stream_id: worker.streamId,
      taken_at: takenAt,
      head,
      events: await dependencies.chainHead(name),
      max_staleness_seconds: maxStaleness,
      now: timestamp(options.clock.now()),
    })
  } catch (error) {
    stream.end()
    throw error
  }
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  })
}

/** A body of server-sent events. Messages before the handshake wait behind it. Comments keep a quiet stream alive. */
function openBody(onEnd: () => void) {
  const encoder = new TextEncoder()
  const waiting: StreamMessage[] = []
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  let isHandshakeSent = false
  const timer = setInterval(() => controller?.enqueue(encoder.encode(':\n\n')), streamCommentMs)
  timer.unref()
  const ended = () => {
    clearInterval(timer)
    controller = null
    onEnd()
  }
  const body = new ReadableStream<Uint8Array>({
    start(opened) {
      controller = opened
    },
    cancel: ended,
  })
  const write = (message: StreamMessage) => {
    if (controller === null) return
    controller.enqueue(encoder.encode(`event: ${message.kind}\ndata: ${JSON.stringify(message)}\n\n`))
    if ((controller.desiredSize ?? 0) < -maxWaiting) stream.end()
  }
  const stream: WorkerStream = {
    send(message) {
      if (isHandshakeSent || message.kind === 'fenced') write(message)
      else waiting.push(message)
    },
    end() {
      const open = controller
      ended()
      open?.close()
    },
  }
  const hello = (message: StreamMessage) => {
    isHandshakeSent = true
    write(message)
    for (const each of waiting.splice(0)) write(each)
  }
  return { stream, body, hello }
}

/** The gateway, instance and token of a session. */
export function sessionOf({ gatewayId, instanceId, tokenId }: Principal) {
  if (gatewayId === null || instanceId === null || tokenId === null) throw new Failure('access_denied')
  return { gatewayId, instanceId, tokenId }
}
