/**
 * JSON-RPC 2.0 with one MCP server for one caller's session. Messages of the server pass with every member:
 *
 * - An answer settles the request of its id. One without a request, or a second one, is counted and dropped.
 * - Progress goes to the request of its token and extends its time, up to the total.
 * - A request reaches the caller by `server-requests.ts`.
 * - Other notifications reach the caller. A server that sends more than `Flood` accepts is disconnected; answers do not
 *   count.
 *
 * Ids and progress tokens are the peer's own. A request that the caller cancels, or that times out, is cancelled at the
 * server.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseExactly, speltOf, withDoubles } from '../../lib/json/exact-json.ts'
import { isRpcId, type RpcId, rpcKey } from '../../lib/json/json-rpc.ts'
import type { Json, McpCaller, McpTrace } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson, metaKeys } from '../protocol.ts'
import { answeredRequestId, isTooDeep } from './message-depth.ts'
import { MessageRateLimit } from './message-rate-limit.ts'
import { ServerRequests } from './server-requests.ts'
import type { Receiver, Transport } from './transport.ts'

export interface PeerOptions {
  caller: McpCaller
  clock: Clock
  /** How long a request may be without progress, and in total. */
  idleMilliseconds: number
  totalMilliseconds: number
  open(receiver: Receiver): Transport
  /** Called once, when the connection broke without being closed. */
  onBroken(reason: Failure): void
  /** Called for an answer without a request, and for a malformed message. */
  onUnsolicited(): void
}

interface Pending {
  resolve(result: Json): void
  reject(error: unknown): void
  onProgress: ((params: Json) => void) | undefined
  /** What the caller knows the call by. */
  related: unknown
  /** The answer holds definitions. */
  isListed: boolean
  /** Monotonic milliseconds. */
  silentSince: number
}

export interface PeerCall {
  signal: AbortSignal
  onProgress?: ((params: Json) => void) | undefined
  trace?: McpTrace
  /** It runs until one side ends it, and progress and silence mean nothing. */
  endless?: true
  /** The least urgent log level that the caller wants; a server without sessions is told with the request. */
  logLevel?: string | null
  /** Further headers, for a server without sessions. */
  headers?: Readonly<Record<string, string>>
  /** Given to the caller with what the server asks or says during this call. */
  related?: unknown
}

export class Peer implements Receiver {
  readonly #options: PeerOptions
  readonly #transport: Transport
  readonly #pending = new Map<number, Pending>()
  readonly #serverRequests: ServerRequests
  readonly #flood: MessageRateLimit
  /** What each request says of the caller; null while the server has a session. */
  #metadata: Json | null = null
  #count = 0
  #over: Failure | null = null

  constructor(options: PeerOptions) {
    this.#options = options
    this.#serverRequests = new ServerRequests(options, () => this.#giveTime())
    this.#flood = new MessageRateLimit(options.clock)
    this.#transport = options.open(this)
  }

  /** Why the connection is over; null while it is not. */
  get over(): Failure | null {
    return this.#over
  }

  /** Whether the server has no sessions. */
  get modern(): boolean {
    return this.#metadata !== null
  }

  /** From now on each request says this of the caller (2026-07-28); null: the server has sessions. */
  speakFor(metadata: Json | null): void {
    this.#metadata = metadata
  }

  ready(protocolVersion: string): void {
    this.#transport.ready(protocolVersion)
  }

  /** The result as the server wrote it. Rejects with its McpError, or a Failure. */
  async request(
    method: string,
    params: Json | undefined,
    { signal, onProgress, trace, related, endless, logLevel, headers }: PeerCall,
  ): Promise<Json> {
    if (this.#over !== null) throw this.#over
    signal.throwIfAborted()
    const id = ++this.#count
    const { promise, resolve, reject } = Promise.withResolvers<Json>()
    const began = this.#options.clock.monotonic()
    const isListed = method === 'initialize' || method === 'server/discover' || method.endsWith('/list')
    this.#pending.set(id, { resolve, reject, onProgress, related, isListed, silentSince: began })
    const giveUp = (reason: unknown) => {
      if (!this.#pending.delete(id)) return
      reject(reason)
      // Cancellation: a server without sessions sees that its stream is closed.
      if (this.#metadata === null || !this.#transport.closesStreams)
        this.#quietly('notifications/cancelled', { requestId: id })
    }
    const leave = () => giveUp(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    const stopClock = endless === true ? () => undefined : this.#watch(id, began, giveUp)
    const token = onProgress === undefined ? withoutToken(params) : withToken(params, id)
    const sent = this.#metadata === null ? token : withMetadata(token, this.#metadata, logLevel ?? null)
    const message = { jsonrpc: '2.0', id, method, ...(sent && { params: sent }) }
    const endWait = this.#transport.request(message, id, { ...trace, ...(this.#metadata !== null && headers) })
    try {
      return await promise
    } finally {
      stopClock()
      this.#serverRequests.endOf(id)
      signal.removeEventListener('abort', leave)
      // The rest of a stream after the answer is not needed.
      endWait()
    }
  }

  /** Rejects with a Failure when it cannot be sent. */
  async notify(method: string, params: Json | undefined): Promise<void> {
    if (this.#over !== null) throw this.#over
    await this.#transport.notify({ jsonrpc: '2.0', method, ...(params && { params }) })
  }

  async close(): Promise<void> {
    this.#finish(new Failure('mcp.server_unavailable', { message: 'The connection to the MCP server was closed' }))
    await this.#transport.close()
  }

  message(text: string, during?: number | null): void {
    if (this.#over !== null) return
    if (!this.#flood.accepts()) {
      this.broken(new Failure('mcp.server_error', { message: 'The MCP server sent too many messages' }))
      return
    }
    if (isTooDeep(text)) this.#refuse(answeredRequestId(text))
    else this.#read(parseExactly(text), text, during)
  }

  #read(message: unknown, text: string, during: number | null | undefined): void {
    if (!isJson(message)) this.#options.onUnsolicited()
    else if (typeof message.method === 'string') this.#hear(message.method, spelt(message, text), during)
    else {
      const { id, error } = message
      // Definitions are compared with approved ones, and another spelling of a number is the same definition.
      const isListed = typeof id === 'number' && this.#pending.get(id)?.isListed === true
      const said = isListed ? message : spelt(message, text)
      // Ids and codes are compared by value.
      this.#settle({
        ...said,
        id,
        error: isJson(error) && isJson(said.error) ? { ...said.error, code: error.code } : error,
      })
    }
  }

  lost(id: number, reason: Error): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.reject(reason)
  }

  waits(id: number): boolean {
    return this.#pending.has(id)
  }

  broken(reason: Failure): void {
    if (this.#over !== null) return
    this.#finish(reason)
    void this.#transport.close()
    this.#options.onBroken(reason)
  }

  #finish(reason: Failure): void {
    this.#over ??= reason
    for (const { reject } of this.#pending.values()) reject(reason)
    this.#pending.clear()
    this.#serverRequests.close(reason)
  }

  /** Gives a request up when it has been silent too long or has taken too long in total. */
  #watch(id: number, began: number, giveUp: (reason: Failure) => void): () => void {
    const { clock, idleMilliseconds, totalMilliseconds } = this.#options
    let timer: Timer | null = null
    const look = () => {
      const pending = this.#pending.get(id)
      if (pending === undefined) return
      const end = Math.min(pending.silentSince + idleMilliseconds, began + totalMilliseconds)
      const left = end - clock.monotonic()
      if (left <= 0) giveUp(new Failure('mcp.server_timeout'))
      else timer = setTimeout(look, left)
    }
    look()
    return () => {
      if (timer !== null) clearTimeout(timer)
    }
  }

  /** A message nested too deep fails the request that it answers, and is otherwise dropped. */
  #refuse(id: number | null): void {
    if (id === null || !this.#pending.has(id)) this.#options.onUnsolicited()
    else this.lost(id, new Failure('mcp.server_error', { message: "The MCP server's answer is nested too deep" }))
  }

  #settle({ id, result, error }: Json): void {
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (typeof id !== 'number' || pending === undefined) {
      this.#options.onUnsolicited()
      return
    }
    this.#pending.delete(id)
    this.#flood.refund()
    if (isJson(result)) pending.resolve(result)
    else if (isJson(error) && typeof error.code === 'number' && typeof error.message === 'string') {
      pending.reject(new McpError(error.code, error.message, error.data))
    } else
      pending.reject(
        new Failure('mcp.server_error', { message: 'The MCP server answered neither a result nor an error' }),
      )
  }

  #hear(method: string, { id, params }: Json, during: number | null | undefined): void {
    const given = isJson(params) ? params : undefined
    if (isRpcId(id)) {
      // A server without sessions sends no requests (2026-07-28, Receiving Messages).
      if (this.#metadata === null) void this.#serve(id, method, given, during)
      else this.#options.onUnsolicited()
    } else if (method === 'notifications/progress') this.#progress(given ?? {})
    else if (method === 'notifications/cancelled') this.#serverRequests.cancelled(given?.requestId)
    else this.#options.caller.notify(method, this.modern ? withoutSubscription(given) : given, this.#related(during))
  }

  #progress(params: Json): void {
    const token = withDoubles(params.progressToken)
    const pending = typeof token === 'number' ? this.#pending.get(token) : undefined
    if (pending?.onProgress === undefined) return
    pending.silentSince = this.#options.clock.monotonic()
    pending.onProgress(params)
  }

  /** The calls that a message on this call's stream belongs to; when unknown, any running ones. */
  #running(during: number | null | undefined): Set<number> | null {
    const calls = during === undefined ? [...this.#pending.keys()] : during === null ? [] : [during]
    return calls.length === 0 ? null : new Set(calls)
  }

  /** What the caller knows the call by that a message belongs to; when unknown, the last one. */
  #related(during: number | null | undefined): unknown {
    const known = during == null ? undefined : this.#pending.get(during)
    return (known ?? [...this.#pending.values()].findLast(({ related }) => related !== undefined))?.related
  }

  async #serve(id: RpcId, method: string, params: Json | undefined, during: number | null | undefined): Promise<void> {
    const asked = { method, params, during: this.#running(during), related: this.#related(during) }
    const answer = await this.#serverRequests.answer(rpcKey(id), asked)
    if (this.#over !== null || answer === null) return
    // A server that does not accept the answer gets none.
    await this.#transport.notify({ jsonrpc: '2.0', id, ...answer }).catch(() => undefined)
  }

  #giveTime(): void {
    const now = this.#options.clock.monotonic()
    for (const pending of this.#pending.values()) pending.silentSince = now
  }

  #quietly(method: string, params: Json): void {
    // The server may be unresponsive, so a failed notification is ignored.
    this.notify(method, params).catch(() => undefined)
  }
}

/** A message with its numbers as they were spelled. */
function spelt(message: Json, text: string): Json {
  const said = speltOf(text, message)
  return isJson(said) ? said : message
}

function withToken(params: Json | undefined, progressToken: number): Json {
  const meta = isJson(params?._meta) ? params._meta : {}
  return { ...params, _meta: { ...meta, progressToken } }
}

function withMetadata(params: Json | undefined, metadata: Json, logLevel: string | null): Json {
  const meta = isJson(params?._meta) ? params._meta : {}
  const level = logLevel === null ? {} : { [metaKeys.logLevel]: logLevel }
  return { ...params, _meta: { ...meta, ...metadata, ...level } }
}

/** The id of a subscription is the gateway's own request, which no caller knows. */
function withoutSubscription(params: Json | undefined): Json | undefined {
  if (!isJson(params?._meta) || params._meta[metaKeys.subscriptionId] === undefined) return params
  const { [metaKeys.subscriptionId]: _, ...meta } = params._meta
  return { ...params, _meta: meta }
}

/** Removes the caller's progress token, which another request of this connection may use. */
function withoutToken(params: Json | undefined): Json | undefined {
  if (!isJson(params?._meta) || params._meta.progressToken === undefined) return params
  const { progressToken: _, ...meta } = params._meta
  return { ...params, _meta: meta }
}
