/**
 * Forwards MCP requests to the worker that owns their session. A session lives in one process, but a connection may
 * reach any worker that shares the port. The session id names its worker. The answer is passed on as it arrives,
 * streams too, and the owner makes all checks itself. The sessions of a stopped worker are gone: 404, after which
 * callers begin a new one (Streamable HTTP, Session Management).
 */

import { Failure } from '../../failure.ts'
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

/** The answer of the worker that owns the session; null when this worker answers. */
export function forwardToOwner(gateway: Gateway, arriving: Asked): Promise<Response> | null {
  const sessionId = arriving.request.headers.get('mcp-session-id')
  const owner = sessionId === null ? null : gateway.mcp.siblings.ownerOf(sessionId)
  return owner === null ? null : pass(arriving, owner, gateway)
}

async function pass(
  asked: Asked,
  owner: (request: ForwardedRequest) => Promise<Response>,
  gateway: Gateway,
): Promise<Response> {
  const { request, requestId } = asked
  const { method, signal } = request
  const body = method === 'POST' ? await readBodyWithin(gateway, asked) : null
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
  } catch {
    end()
    // Otherwise the worker just ended, and its sessions with it.
    throw signal.aborted ? new Failure('client_left') : noSuchSession()
  }
  return new Response(untilEnd(answer.body, end), { status: answer.status, headers: endToEnd(answer.headers) })
}

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
