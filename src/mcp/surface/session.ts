/**
 * One caller's session on the published surface (Streamable HTTP, Session Management): the protocol version it chose,
 * its requests that run, the streams it may come back for, and its own connection to each server, opened when it
 * first asks something of that server and closed with the session. So what a server asks or says reaches exactly the
 * caller on whose behalf it works.
 *
 * What a server sends while it works on a request of the caller goes out with that request's answer, otherwise on the
 * stream that the caller opened by GET. Ids of requests to the caller, and the tokens of their progress, are the
 * session's own, because two servers may choose the same. Policies see what passes, by `SessionGovernor`.
 */
import { isRpcId, type RpcId, rpcCodes, rpcKey } from '../../lib/json/json-rpc.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord, McpServers } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { callerMethods, forwardedCapabilities } from '../protocol.ts'
import { CallerRequests } from './caller-requests.ts'
import { type Message, notificationText } from './json-rpc.ts'
import { publishedUri } from './names.ts'
import { NotificationQueue } from './notification-queue.ts'
import { type AnswerForm, RunningCall } from './running-call.ts'
import { SessionStreams } from './session-streams.ts'
import { ShownOffers } from './shown-offers.ts'

/** What policies make of what passes between a server and the caller, outside of the caller's own requests. */
export interface SessionGovernor {
  /**
   * Takes a server's request to the caller: `deliver` sends it as policies left it, and what comes back is the caller's
   * answer as they left that. Rejects with an McpError where they refuse.
   */
  ask(
    session: McpSession,
    asked: { server: McpServerRecord; method: string; params: Json; signal: AbortSignal },
    deliver: (params: Json) => Promise<Json>,
  ): Promise<Json>
  /** A notification as policies left it; null where they refuse it. */
  tell(session: McpSession, told: { server: McpServerRecord; method: string; params: Json }): Promise<Json | null>
  /** Whether the session's token may still be used at this instant: nothing leaves to one that may not. */
  mayTell(session: McpSession): boolean
}

/** A token by which a session is used. */
export interface SessionToken {
  readonly id: string
  readonly hash: string
  /** The credential itself where it can be a person's own, for `personal/`; absent for all others. */
  readonly secret?: string
}

export interface SessionOptions {
  readonly id: string
  /** Names it in events; unlike its id it opens nothing. */
  readonly label: string
  readonly token: SessionToken
  /** Whose it is: stays the same when the token is refreshed or rotated. */
  readonly owner: string
  readonly protocolVersion: string
  /** What the caller can do. */
  readonly capabilities: Json
  readonly servers: McpServers
  readonly governor: SessionGovernor
  /** Told of each thing that a server said and that found no room. */
  evicted(): void
}

/** From this version on, a stream begins with an event without data. */
const primedFrom = '2025-11-25'
/** Requests of the caller that run at once. */
const mostRunning = 256

const listChanges: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
])

interface Opened {
  readonly record: McpServerRecord
  readonly opening: Promise<McpConnection>
  readonly seen: ShownOffers
  readonly notices: NotificationQueue
}

export class McpSession {
  readonly id: string
  readonly label: string
  readonly owner: string
  /** The one that it was last shown, by which it is looked at beside requests. */
  token: SessionToken
  readonly protocolVersion: string
  readonly #options: SessionOptions
  /** By the key of their id. */
  readonly #running = new Map<string, RunningCall>()
  readonly #streams: SessionStreams
  readonly #connections = new Map<string, Opened>()
  readonly #asked = new CallerRequests()
  #level: string | null = null
  #closed = false

  constructor(options: SessionOptions) {
    this.id = options.id
    this.label = options.label
    this.owner = options.owner
    this.token = options.token
    this.protocolVersion = options.protocolVersion
    this.#options = options
    this.#streams = new SessionStreams(options.protocolVersion >= primedFrom)
  }

  /** Whether something of it runs, or its caller listens. */
  get busy(): boolean {
    return this.#running.size > 0 || this.#streams.notifications.attached
  }

  /** Begins a request. Throws an McpError where its id is in use, or too many run. */
  begin(id: RpcId, progressToken: RpcId | null, form: AnswerForm): RunningCall {
    const key = rpcKey(id)
    if (this.#running.has(key)) throw new McpError(rpcCodes.invalidRequest, 'A request with this id is still running')
    if (this.#running.size >= mostRunning)
      throw new McpError(rpcCodes.internalError, 'Too many requests of this session are in flight')
    const call = new RunningCall({ id, progressToken, form, openStream: () => this.#streams.open() })
    this.#running.set(key, call)
    return call
  }

  end(call: RunningCall): void {
    this.#running.delete(rpcKey(call.id))
    call.stream?.end()
    this.#streams.forgetOld()
  }

  /** The stream of what is said beside answers, connected to the caller. */
  listen(): ReadableStream<Uint8Array> | null {
    return this.#streams.notifications.attach()
  }

  /** A stream that was broken off, from after the event of this id; null where it is not kept. */
  resume(lastEventId: string): ReadableStream<Uint8Array> | null {
    return this.#streams.resume(lastEventId)
  }

  keepAlive(): void {
    this.#streams.keepAlive()
  }

  /** What the caller says that is no request. */
  receive(message: Exclude<Message, { kind: 'request' }>): void {
    if (message.kind === 'notification') this.#receiveNotification(message.method, message.params)
    else if (message.kind === 'result') this.#asked.answered(message.id, message.result)
    else this.#asked.refused(message.id, message.error)
  }

  /** This session's connection to a server. Rejects with a Failure where there can be none. */
  connection(record: McpServerRecord): Promise<McpConnection> {
    return this.#opened(record).opening
  }

  /** What was shown of a server to this session. */
  seen(record: McpServerRecord): ShownOffers {
    return this.#opened(record).seen
  }

  /** What was shown of a server is looked at again before it is called. */
  forgetSeen(record: McpServerRecord): void {
    this.#connections.get(record.id)?.seen.forget()
  }

  /** Sets what is logged by the servers that this session uses, and by those it will use. */
  async setLevel(level: string): Promise<void> {
    this.#level = level
    // One that could not be opened is told when it is; why is said to who needs it.
    await Promise.allSettled(
      [...this.#connections.values()].map(({ opening }) => opening.then((open) => this.#tellLevel(open))),
    )
  }

  /** Passes on the progress of a call, by the caller's own token. */
  progressed(call: RunningCall, server: McpServerRecord, params: Json): void {
    if (call.progressToken === null) return
    const told = { ...params, progressToken: call.progressToken }
    this.#tell(server, 'notifications/progress', told, (text) => void call.send(text))
  }

  /** Resolves when what a server has said so far is said: its answer does not overtake it. */
  async told(server: McpServerRecord): Promise<void> {
    await this.#connections.get(server.id)?.notices.flushed()
  }

  /** The records have changed: what is no longer as it was is closed, and the caller told to look again. */
  recordsChanged(): void {
    const present = new Map(this.#options.servers.list().map((record) => [record.id, record.version]))
    for (const { record } of this.#connections.values()) {
      if (present.get(record.id) !== record.version) this.disconnect(record)
    }
    for (const { seen } of this.#connections.values()) seen.forget()
    for (const method of listChanges) this.#announce(method)
  }

  /** Lets go of a connection that is of no more use: the next request opens another. */
  disconnect(record: McpServerRecord): void {
    const opened = this.#connections.get(record.id)
    if (opened === undefined) return
    this.#connections.delete(record.id)
    closeQuietly(opened.opening)
  }

  /** Ends everything: what runs, what waits, streams and connections. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const call of this.#running.values()) call.onCancel?.()
    this.#asked.close()
    this.#streams.close()
    for (const { opening } of this.#connections.values()) closeQuietly(opening)
    this.#connections.clear()
  }

  #opened(record: McpServerRecord): Opened {
    const known = this.#connections.get(record.id)
    if (known !== undefined && known.record.version === record.version) return known
    this.disconnect(record)
    const opening = this.#open(record)
    const opened: Opened = { record, opening, seen: new ShownOffers(), notices: new NotificationQueue() }
    this.#connections.set(record.id, opened)
    opening.catch(() => {
      // Whoever asked is told why; here it only must not stand in the way of the next try.
      if (this.#connections.get(record.id) === opened) this.#connections.delete(record.id)
    })
    return opened
  }

  async #open(record: McpServerRecord): Promise<McpConnection> {
    const { servers, capabilities } = this.#options
    const caller: McpCaller = {
      protocolVersion: this.protocolVersion,
      capabilities: forwardedCapabilities(capabilities),
      credential: () => this.token,
      request: (method, params, { signal }) => this.#ask(record, method, params ?? {}, signal),
      notify: (method, params) => this.#hear(record, method, params ?? {}),
    }
    const connection = await servers.connect(record, caller)
    if (this.#closed) {
      closeQuietly(Promise.resolve(connection))
      throw new McpError(rpcCodes.internalError, 'The session has ended')
    }
    await this.#tellLevel(connection)
    return connection
  }

  async #tellLevel(connection: McpConnection): Promise<void> {
    if (this.#level === null || connection.capabilities.logging === undefined) return
    const signal = AbortSignal.timeout(connection.server.timeoutMilliseconds)
    // A server that cannot say less is still of use.
    await connection.request('logging/setLevel', { level: this.#level }, { signal }).catch(() => undefined)
  }

  async #ask(server: McpServerRecord, method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const capability = callerMethods.get(method)
    if (capability === undefined || this.#options.capabilities[capability] === undefined) {
      throw new McpError(rpcCodes.methodNotFound, 'The caller cannot do this')
    }
    this.#asked.assertRoom()
    const asked = { server, method, params, signal }
    return await this.#options.governor.ask(this, asked, (governed) =>
      this.#asked.ask({ serverId: server.id, method, params: governed, signal }, (text) => this.#sendFor(server, text)),
    )
  }

  /** Says that a list has changed. */
  #announce(method: string): void {
    if (this.#options.governor.mayTell(this)) this.#streams.notifications.send(notificationText(method, undefined))
  }

  /** Says something with the answer to what the server works on; where that is nothing, by itself. */
  #sendFor(server: McpServerRecord, text: string): void {
    if (!this.#options.governor.mayTell(this)) return
    const calls = [...this.#running.values()].filter(({ serverId }) => serverId === server.id)
    if (calls.at(-1)?.send(text) !== true) this.#streams.notifications.send(text)
  }

  #hear(server: McpServerRecord, method: string, params: Json): void {
    if (listChanges.has(method)) {
      this.#connections.get(server.id)?.seen.forget()
      this.#announce(method)
    } else if (method === 'notifications/resources/updated') {
      if (typeof params.uri !== 'string') return
      const told = { ...params, uri: publishedUri(server.name, params.uri) }
      this.#tell(server, method, told, (text) => this.#streams.notifications.send(text))
    } else if (method === 'notifications/message' || method === 'notifications/elicitation/complete') {
      this.#tell(server, method, params, (text) => this.#sendFor(server, text))
    }
  }

  /** In the order in which it was said, each as policies left it. */
  #tell(server: McpServerRecord, method: string, params: Json, send: (text: string) => void): void {
    const taken = this.#connections.get(server.id)?.notices.add(params, async () => {
      const governed = await this.#options.governor.tell(this, { server, method, params })
      if (governed !== null) send(notificationText(method, governed))
    })
    if (taken === false) this.#options.evicted()
  }

  #receiveNotification(method: string, params: Json): void {
    if (method === 'notifications/cancelled') {
      const { requestId } = params
      if (isRpcId(requestId)) this.#running.get(rpcKey(requestId))?.cancel()
    } else if (method === 'notifications/progress') {
      const asked = this.#asked.progressOf(params)
      if (asked !== null) this.#pass(asked.serverId, method, asked.params)
    } else if (method === 'notifications/roots/list_changed') {
      for (const id of this.#connections.keys()) this.#pass(id, method, {})
    }
  }

  #pass(serverId: string, method: string, params: Json): void {
    const opened = this.#connections.get(serverId)
    // A notification has no answer: that it did not arrive is nobody's to hear.
    opened?.opening.then((connection) => connection.notify(method, params)).catch(() => undefined)
  }
}

function closeQuietly(opening: Promise<McpConnection>): void {
  // Nobody waits for its end; a server that does not take leave is the server's trouble.
  opening.then((connection) => connection.close()).catch(() => undefined)
}
