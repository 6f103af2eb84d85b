/**
 * The WebSockets of a gateway: the opening handshake (RFC 6455 section 4.2), and all connections, for a shutdown and
 * for tokens that are cut off. A handshake is decided like a request, up to whether the token may call a gateway at
 * all, and refused as one, with its event; each frame is then admitted by itself (`connection.ts`).
 *
 * The Origin header is not looked at: a browser cannot send the Authorization header that is required here, and there
 * are no cookies, so no page can borrow a credential.
 */

import { envelope, Failure } from '../../failure.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { families, familyNames } from '../../languages/families.ts'
import { dialects } from '../../languages/index.ts'
import { authenticate } from '../admission/authenticate.ts'
import { admitToken } from '../admission/authorize.ts'
import { tokenRevoked } from '../admission/token-revoked.ts'
import type { Gateway } from '../context.ts'
import { answerFailure, failureResponse } from '../error-response.ts'
import { beginExchange, type Connection, type Exchange, required } from '../exchange.ts'
import { admitSession } from '../realtime/admission.ts'
import type { GovernSession } from '../realtime/live-session.ts'
import { RealtimeSession } from '../realtime/session.ts'
import { type FrameArrival, SocketConnection } from './connection.ts'
import { Conversation } from './conversation.ts'
import type { Ending } from './endings.ts'
import { socketFrames } from './frame.ts'
import type { Peer } from './outlet.ts'
import { chosenProtocol, withProtocolToken } from './subprotocol.ts'

/** The server's part in a handshake. */
export type SocketListener = Connection & Pick<Bun.Server<SocketHolder>, 'upgrade'>

/** What `Bun.serve` takes as `websocket`. */
export type SocketHandlers = Bun.WebSocketHandler<SocketHolder>

/** What a WebSocket belongs to: a connection with requests as frames, or a realtime session. */
export interface SocketHolder {
  readonly token: SocketConnection['token']
  readonly requestId: string
  opened(peer: Peer): void
  received(message: string | Buffer): void
  drained(): void
  closed(): void
  /** Ends it once what runs has ended. `frame` is sent first. */
  end(ending: Ending, frame?: string | null): void
}

export interface SocketRoute {
  /** `GET /v1/chat/completions/ws` */
  route: string
  path: string
  /** Spoken by what refuses the handshake. */
  dialect: Dialect
  /** Spoken by the frames. */
  frames: Dialect
  /** Requests without an upgrade may mean something else at this path. */
  shared: boolean
}

export interface Sockets {
  /** The route that a request to this path asks an upgrade of, or null where it is for others. */
  routeOf(path: string, request: Request): SocketRoute | null
  /** Answers the handshake; `undefined` where the connection now is a WebSocket. */
  open(
    route: SocketRoute,
    request: Request,
    arrival: HandshakeArrival,
  ): Promise<Response | undefined> | Response | undefined
  /** Ends the connections of these tokens, each with an error frame. */
  endOf(tokenHashes: readonly string[]): void
  /** Lets each connection finish the frame it answers, then closes it; waits until all are closed, at most so long. */
  drain(milliseconds: number): Promise<void>
  readonly size: number
  readonly handlers: SocketHandlers
}

/** The request as it came, which is the one that can be upgraded. */
interface Handshake {
  readonly server: SocketListener | null
  readonly asked: Request
}

export interface HandshakeArrival {
  server: SocketListener | null
  requestId: string
}

/** Takes what arrives on a WebSocket through its stages. */
export interface GovernSockets {
  frame(route: SocketRoute, arrival: FrameArrival, conversation: Conversation | null): Promise<Response>
  session: GovernSession
}

/** Idle for this long, a peer is pinged; one that does not answer is gone. */
const idleSeconds = 120
const waitingFrames = 2

const routes: ReadonlyMap<string, SocketRoute> = new Map(
  familyNames.flatMap((family) => {
    const dialect = dialects[family]
    const frames = socketFrames(dialect)
    return (families[family].webSockets ?? []).map(
      ({ path, shared = false }) => [path, { route: `GET ${path}`, path, dialect, frames, shared }] as const,
    )
  }),
)

export function createSockets(gateway: Gateway, govern: GovernSockets): Sockets {
  const connections = new Set<SocketHolder>()
  let sessions = 0
  const limit = gateway.settings.body_limit_bytes
  let onEmpty: (() => void) | null = null

  const accept = (holder: SocketHolder, { server, asked }: Handshake, route: SocketRoute) => {
    const protocol = chosenProtocol(asked)
    const headers = { 'x-request-id': holder.requestId, ...(protocol && { 'sec-websocket-protocol': protocol }) }
    if (server?.upgrade(asked, { data: holder, headers }) !== true) {
      return failureResponse(route.dialect, new Failure('bad_request'), holder.requestId, null)
    }
    connections.add(holder)
    return undefined
  }
  const closed = (holder: SocketHolder) => {
    connections.delete(holder)
    if (connections.size === 0) onEmpty?.()
  }

  const openConnection = (route: SocketRoute, handshake: Handshake, exchange: Exchange) => {
    const { request, requestId } = exchange
    const isConversation = route.dialect.family === 'responses'
    const conversation = isConversation ? new Conversation(gateway.memory.conversations, limit) : null
    const connection = new SocketConnection({
      url: request.url,
      headers: frameHeaders(request.headers),
      requestId,
      token: required(exchange.token),
      waitingLimit: waitingFrames * limit,
      conversation,
      govern: (arrival) => govern.frame(route, arrival, conversation),
      onClosed: closed,
    })
    return accept(connection, handshake, route)
  }

  const openSession = async (route: SocketRoute, handshake: Handshake, exchange: Exchange) => {
    sessions += 1
    let isOpen = false
    try {
      await admitSession(exchange, gateway, sessions)
      const session = new RealtimeSession({
        gateway,
        exchange,
        govern: govern.session,
        onClosed(holder) {
          sessions -= 1
          closed(holder)
        },
      })
      const refusal = accept(session, handshake, route)
      isOpen = refusal === undefined
      return refusal
    } catch (thrown) {
      return await answerFailure(exchange, gateway, thrown)
    } finally {
      if (!isOpen) sessions -= 1
    }
  }

  return {
    get size() {
      return connections.size
    },
    routeOf(path, request) {
      const route = routes.get(path) ?? null
      return route?.shared === true && !asksForUpgrade(request) ? null : route
    },
    open(route, asked, { server, requestId }) {
      const invalidHandshake = unfitHandshake(route, asked, requestId)
      if (invalidHandshake !== null) return invalidHandshake
      const isSession = route.dialect.family === 'realtime'
      const request = isSession ? withProtocolToken(asked) : asked
      const exchange = beginExchange(
        { request, connection: server, requestId, ...route, family: route.dialect.family },
        gateway,
      )
      try {
        authenticate(exchange, gateway)
        admitToken(exchange, gateway)
      } catch (thrown) {
        return answerFailure(exchange, gateway, thrown)
      }
      return (isSession ? openSession : openConnection)(route, { server, asked }, exchange)
    },
    endOf(tokenHashes) {
      for (const connection of connections) {
        if (!tokenHashes.includes(connection.token.hash)) continue
        const failure = tokenRevoked(gateway.worker.status.organizationId, connection.token.id)
        const frame = { type: 'error', status: failure.status, ...envelope(failure, connection.requestId) }
        connection.end({ code: 1008, reason: 'The token has been revoked' }, JSON.stringify(frame))
      }
    },
    async drain(milliseconds) {
      for (const connection of connections) connection.end({ code: 1001, reason: 'The gateway is shutting down' })
      if (connections.size === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds)
        onEmpty = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    handlers: {
      maxPayloadLength: limit,
      // Of one answer's frames one at a time waits to leave; the provider's may be as large as an SSE frame.
      backpressureLimit: 64 * 1024 * 1024,
      perMessageDeflate: false,
      idleTimeout: idleSeconds,
      sendPings: true,
      open: (peer) => peer.data.opened(peer),
      message: (peer, message) => peer.data.received(message),
      drain: (peer) => peer.data.drained(),
      close: (peer) => peer.data.closed(),
    },
  }
}

const asksForUpgrade = (request: Request): boolean => request.method === 'GET' && request.headers.has('upgrade')

/** RFC 6455 section 4.2.1: what every opening handshake must have; RFC 9110 section 15.5.22 for 426. */
function unfitHandshake({ dialect }: SocketRoute, { method, headers }: Request, requestId: string): Response | null {
  const answer = (failure: Failure, more: Record<string, string>) => {
    const response = failureResponse(dialect, failure, requestId, null)
    for (const [name, value] of Object.entries(more)) response.headers.set(name, value)
    return response
  }
  if (method !== 'GET') return answer(new Failure('method_not_allowed'), { allow: 'GET' })
  if (!lists(headers, 'upgrade', 'websocket') || !lists(headers, 'connection', 'upgrade')) {
    return answer(new Failure('upgrade_required'), { upgrade: 'websocket', connection: 'upgrade' })
  }
  if (headers.get('sec-websocket-version') !== '13') {
    const message = 'Sec-WebSocket-Version must be 13'
    return answer(new Failure('upgrade_required', { message }), { upgrade: 'websocket', 'sec-websocket-version': '13' })
  }
  if (!/^[A-Za-z0-9+/]{22}==$/.test(headers.get('sec-websocket-key') ?? '')) {
    return answer(new Failure('bad_request', { message: 'Sec-WebSocket-Key must be 16 bytes in base64' }), {})
  }
  return null
}

/** Whether a header lists a word, in whatever case (RFC 9110 section 5.6.1). */
const lists = (headers: Headers, name: string, word: string): boolean =>
  (headers.get(name) ?? '').split(',').some((each) => each.trim().toLowerCase() === word)

/**
 * The handshake's headers as those of each frame. A key to one request is not one to all of a connection's, and a mark
 * that asks for a WebSocket (Codex) means nothing to a provider that is called by HTTP.
 */
function frameHeaders(handshake: Headers): Headers {
  const headers = new Headers(handshake)
  headers.delete('idempotency-key')
  const beta = (headers.get('openai-beta') ?? '').split(',').filter((mark) => !mark.includes('responses_websockets='))
  if (beta.join('').trim() === '') headers.delete('openai-beta')
  else headers.set('openai-beta', beta.join(',').trim())
  return headers
}
