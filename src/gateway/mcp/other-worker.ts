/**
 * Forwards MCP requests to the worker that owns their session. A session lives in one process, but a connection may
 * reach any worker that shares the port. The session id names its worker. The answer is passed on as it arrives,
 * streams too, and the owner makes all checks itself. A session of a stopped worker is made again by the worker that is
 * asked (`caller-session.ts`). A request that ran when its worker ended is not repeated: 404, after which callers begin
 * a new session (Streamable HTTP, Session Management).
 */

import { Failure } from '../../failure.ts'
import type { RpcRequest } from '../../mcp/surface/json-rpc.ts'
import type { BodyMemory } from '../admission/memory-budget.ts'
import type { Gateway } from '../context.ts'
import type { Connection } from '../exchange.ts'
import { liftIdleTimeout, restoreIdleTimeout } from '../idle-timeout.ts'
import { readBodyWithin } from '../request/read-body.ts'
import { noSuchSession } from './http.ts'
import type { ForwardedRequest } from './sibling-workers.ts'

interface Asked {
  readonly request: Request
  readonly connection: Connection | null
  readonly memory: BodyMemory
  readonly requestId: string
}

type Owner = (request: ForwardedRequest) => Promise<Response>

/**
 * The answer of the worker that owns the session; null when this worker answers. `here` answers a request whose worker
 * has just ended.
 */
export function forwardToOwner(
  gateway: Gateway,
  arriving: Asked,
  here: (request: Request) => Promise<Response> | Response,
): Promise<Response> | null {
  const sessionId = arriving.request.headers.get('mcp-session-id')
  const owner = sessionId === null ? null : gateway.mcp.siblings.ownerOf(sessionId)
  return owner === null ? null : passWhole(arriving, owner, gateway, here)
}

async function passWhole(
  asked: Asked,
  owner: Owner,
  gateway: Gateway,
  here: (request: Request) => Promise<Response> | Response,
): Promise<Response> {
  const { request } = asked
  const body = request.method === 'POST' ? await readBodyWithin(gateway, asked) : null
  try {
    return await pass(asked, owner, gateway, body)
  } catch (thrown) {
    if (!(thrown instanceof OwnerGone)) throw thrown
    return await here(body === null ? request : new Request(request, { body }))
  }
}

/** The worker had ended before the request reached it. */
class OwnerGone extends Error {}

/** The answer of another worker to a message whose body was read; null when it has just ended. */
export async function forwardMessage(
  gateway: Gateway,
  asked: Asked,
  owner: Owner,
  message: Pick<RpcRequest, 'id' | 'method' | 'params'>,
): Promise<Response | null> {
  const { id, method, params } = message
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  try {
    return await pass(asked, owner, gateway, body)
  } catch (thrown) {
    if (thrown instanceof OwnerGone) return null
    throw thrown
  }
}

async function pass(asked: Asked, owner: Owner, gateway: Gateway, body: Uint8Array | null): Promise<Response> {
  const { request, requestId } = asked
  const { method, signal } = request
  // Reading a body has lifted it already.
  if (body === null) liftIdleTimeout(asked)
  const headers = endToEnd(request.headers)
  headers.set('x-request-id', requestId)
  const { promise: passed, resolve } = Promise.withResolvers<void>()
  const end = () => {
    restoreIdleTimeout(asked)
    resolve()
  }
  // A listening stream ends with its session, which ends once nothing runs.
  if (method === 'POST') gateway.running.waitFor(passed)
  let answer: Response
  try {
    answer = await owner({ method, headers, body, signal })
  } catch (thrown) {
    end()
    if (isRefused(thrown)) throw new OwnerGone()
    // Otherwise the worker ended while it worked on the request.
    throw signal.aborted ? new Failure('client_left') : noSuchSession()
  }
  return new Response(untilEnd(answer.body, end), { status: answer.status, headers: endToEnd(answer.headers) })
}

const isRefused = (thrown: unknown): boolean =>
  thrown instanceof Error && 'code' in thrown && thrown.code === 'ECONNREFUSED'

/** The same bytes; `ended` is called when no more will be read. */
function untilEnd(body: ReadableStream<Uint8Array> | null, ended: () => void): ReadableStream<Uint8Array> | null {
  if (body === null) {
    ended()
    return null
  }
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (value !== undefined) controller.enqueue(value)
        if (!done) return
        controller.close()
      } catch (thrown) {
        controller.error(thrown)
      }
      ended()
    },
    cancel(reason) {
      ended()
      return reader.cancel(reason)
    },
  })
}

/** RFC 9110 section 7.6.1; host, length and encoding are those of another message. */
const ofThisMessage = [
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'content-encoding',
]

function endToEnd(headers: Headers): Headers {
  const kept = new Headers(headers)
  for (const name of ofThisMessage) kept.delete(name)
  return kept
}
