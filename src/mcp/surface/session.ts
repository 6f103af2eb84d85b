/**
 * What this process keeps for one caller: its requests that run, its streams, and its own connection to each server,
 * opened when it first asks something of that server and closed with the session. So what a server asks or says reaches
 * exactly the caller on whose behalf it works. Any process can make it again: for a caller of a version with sessions
 * from the id that it sends (Streamable HTTP, Session Management), for one of 2026-07-28 from every request; then it
 * serves all requests of one owner with the same capabilities.
 *
 * What a server sends while it works on a request of the caller goes out with that request's answer, otherwise on the
 * stream that the caller opened by GET. A caller of 2026-07-28 gets it with that answer or not at all, changes on the
 * streams that it opened by `subscriptions/listen`, and questions of a server as the result of its request
 * (`held-calls.ts`). Ids of requests to the caller, and the tokens of their progress, are the session's own, because
 * two servers may choose the same. Policies see what passes, by `SessionGovernor`.
 */
import { isRpcId, type RpcId, rpcCodes, rpcKey } from '../../lib/json/json-rpc.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord, McpServers } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { callerMethods, forwardedCapabilities, listChanges, modernVersion } from '../protocol.ts'
import { CallerRequests } from './caller-requests.ts'
import { HeldCall, HeldCalls } from './held-calls.ts'
import { type Message, notificationText } from './json-rpc.ts'
import { publishedUri } from './names.ts'
import { type AnswerForm, RunningCall } from './running-call.ts'
import { type SentRequest, sendAtOnce, sendHeld } from './sent-request.ts'
import { SessionConnections } from './session-connections.ts'
import type { SessionToken } from './session-token.ts'
import type { ShownOffers } from './shown-offers.ts'
import { SessionStreams } from './streams/session-streams.ts'
import { Subscriptions } from './streams/subscriptions.ts'

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

export interface SessionOptions {
  readonly id: string
  /** Names it in events; unlike its id it opens nothing. Null for a caller without sessions. */
  readonly label: string | null
  readonly token: SessionToken
  /** Whose it is: stays the same when the token is refreshed or rotated. */
  readonly owner: string
  readonly protocolVersion: string
  readonly capabilities: Json
  /** It was begun elsewhere, where its caller may have missed something. */
  readonly revived?: boolean
  readonly servers: McpServers
  readonly governor: SessionGovernor
  /** Told of each thing that a server said and that found no room. */
  evicted(): void
}

/** From this version on, a stream begins with an event without data. */
const primedFrom = '2025-11-25'
/** Requests of the caller that run at once. */
const mostRunning = 256

export class McpSession {
  readonly id: string
  readonly label: string | null
  readonly owner: string
  /** The one that it was last shown, by which it is looked at beside requests. */
  token: SessionToken
  listChanges = 0
  readonly protocolVersion: string
  /** What the caller can do, as far as the gateway passes it on. */
  readonly capabilities: Json
  /** Whether the caller has no sessions (2026-07-28). */
  readonly modern: boolean
  readonly revived: boolean
  readonly subscriptions: Subscriptions
  readonly #options: SessionOptions
  /** By the key of their id; those of 2026-07-28 by a number, because several clients may share this. */
  readonly #running = new Map<string, RunningCall>()
  readonly #streams: SessionStreams
  readonly #connections: SessionConnections
  readonly #asked = new CallerRequests()
  readonly #held = new HeldCalls()
  #begun = 0
  #level: string | null = null
  #closed = false

  constructor(options: SessionOptions) {
    this.id = options.id
    this.label = options.label
    this.owner = options.owner
    this.token = options.token
    this.protocolVersion = options.protocolVersion
    this.#options = options
    this.capabilities = forwardedCapabilities(options.capabilities)
    this.modern = options.protocolVersion === modernVersion
    this.revived = options.revived === true
    this.#streams = new SessionStreams(
      this.modern ? 'once' : this.protocolVersion >= primedFrom ? 'primed' : 'resumable',
    )
    this.#connections = new SessionConnections((record) => options.servers.connect(record, this.#callerFor(record)))
    this.subscriptions = new Subscriptions(() => this.#streams.open())
  }

  /** Whether this call waits for its caller to return (`requestState` of a server with sessions). */
  holds(call: string | null): boolean {
    return call !== null && this.#held.has(call)
  }

  /** Whether something of it runs, or its caller listens. */
  get busy(): boolean {
    return (
      this.#running.size > 0 ||
      this.#streams.notifications.attached ||
      this.#held.size > 0 ||
      this.subscriptions.size > 0
    )
  }

  /** Begins a request. Throws an McpError where its id is in use, or too many run. */
  begin(id: RpcId, progressToken: RpcId | null, form: AnswerForm, logLevel: string | null = null): RunningCall {
    this.#begun += 1
    const key = this.modern ? `${this.#begun}` : rpcKey(id)
    if (this.#running.has(key)) throw new McpError(rpcCodes.invalidRequest, 'A request with this id is still running')
    if (this.#running.size >= mostRunning)
      throw new McpError(rpcCodes.internalError, 'Too many requests of this session are in flight')
    const openStream = () => this.#streams.open()
    const call = new RunningCall({ id, key, progressToken, form, logLevel, openStream })
    this.#running.set(key, call)
    return call
  }

  end(call: RunningCall): void {
    this.#running.delete(call.key)
    call.stream?.end()
    this.#streams.forgetOld()
  }

  /** The stream of what is said beside answers, connected to the caller. */
  listen(): ReadableStream<Uint8Array> | null {
    return this.#streams.notifications.attach()
  }

  /**
   * A stream that was broken off, from after the event of this id; null where it is not kept. A session that was begun
   * elsewhere has none of its old streams, so its caller listens anew.
   */
  resume(lastEventId: string): ReadableStream<Uint8Array> | null {
    return this.#streams.resume(lastEventId) ?? (this.revived ? this.listen() : null)
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
    return this.#connections.opened(record).opening
  }

  /** What was shown of a server to this session. */
  seen(record: McpServerRecord): ShownOffers {
    return this.#connections.opened(record).seen
  }

  /** What was shown of a server is looked at again before it is called. */
  forgetSeen(record: McpServerRecord): void {
    this.#connections.get(record.id)?.seen.forget()
  }

  /**
   * Sends a request of the caller, and resolves with the result, or with what the server needs of a caller of 2026-07-28
   * first. Rejects as the connection does.
   */
  async send(connection: McpConnection, call: RunningCall, sent: SentRequest): Promise<Json> {
    const progressed = (running: RunningCall, told: Json) => this.progressed(running, connection.server, told)
    if (this.modern && (!connection.modern || this.holds(sent.state ?? null))) {
      await this.#connections.tellCallLevel(connection, call.logLevel)
      return await sendHeld(connection, call, sent, { held: this.#held, capabilities: this.capabilities, progressed })
    }
    return await sendAtOnce(connection, call, sent, { level: this.modern ? call.logLevel : this.#level, progressed })
  }

  /** Sets what is logged by the servers that this session uses, and by those it will use. */
  async setLevel(level: string): Promise<void> {
    this.#level = level
    await this.#connections.setLevel(level)
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
    this.#connections.keep(this.#options.servers.list())
    for (const method of listChanges) this.#announce(method)
  }

  /** The process no longer takes requests: what waits for one ends. */
  drain(): void {
    this.#held.close()
  }

  /** Ends everything: what runs, what waits, streams and connections. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const call of this.#running.values()) call.onCancel?.()
    this.#asked.close()
    this.#held.close()
    this.subscriptions.close()
    this.#streams.close()
    this.#connections.close()
  }

  #callerFor(record: McpServerRecord): McpCaller {
    return {
      ...{ protocolVersion: this.protocolVersion, capabilities: this.capabilities, credential: () => this.token },
      request: (method, params, { signal, related }) =>
        this.#ask(record, { method, params: params ?? {}, signal, related }),
      notify: (method, params, related) => this.#hear(record, method, params ?? {}, related),
    }
  }

  async #ask(server: McpServerRecord, { method, params, signal, related }: Asked): Promise<Json> {
    const capability = callerMethods.get(method)
    if (capability === undefined || this.capabilities[capability] === undefined) {
      throw new McpError(rpcCodes.methodNotFound, 'The caller cannot do this')
    }
    if (this.modern && !(related instanceof HeldCall))
      throw new McpError(rpcCodes.refused, 'The caller is only asked while it waits for a call')
    this.#asked.assertRoom()
    const asked = { server, method, params, signal }
    return await this.#options.governor.ask(this, asked, (governed) =>
      related instanceof HeldCall
        ? related.ask(method, governed, signal)
        : this.#asked.ask({ serverId: server.id, method, params: governed, signal }, (text) =>
            this.#sendFor(server, text, related),
          ),
    )
  }

  /** Says that a list has changed. */
  #announce(method: string): void {
    this.listChanges += 1
    if (!this.#options.governor.mayTell(this)) return
    if (this.modern) this.subscriptions.listChanged(method)
    else this.#streams.notifications.send(notificationText(method, undefined))
  }

  /** Says something with the answer to what the server works on; where that is nothing, by itself. */
  #sendFor(server: McpServerRecord, text: string, related: unknown): void {
    if (!this.#options.governor.mayTell(this)) return
    const call = this.#callOf(server, related)
    if (call?.send(text) !== true && !this.modern) this.#streams.notifications.send(text)
  }

  /** The running call that a message belongs to; when that is unknown, the last one at the server. */
  #callOf(server: McpServerRecord, related: unknown): RunningCall | null {
    const own = related instanceof HeldCall ? related.call : related
    if (own instanceof RunningCall) return this.#running.has(own.key) ? own : null
    if (this.modern) return null
    return [...this.#running.values()].filter(({ serverId }) => serverId === server.id).at(-1) ?? null
  }

  #hear(server: McpServerRecord, method: string, params: Json, related: unknown): void {
    if (listChanges.has(method)) {
      this.#connections.get(server.id)?.seen.forget()
      this.#announce(method)
    } else if (method === 'notifications/resources/updated') {
      if (typeof params.uri !== 'string') return
      const told = { ...params, uri: publishedUri(server.name, params.uri) }
      this.#tell(server, method, told, (text, governed) => {
        if (this.modern) this.subscriptions.updated(governed)
        else this.#streams.notifications.send(text)
      })
    } else if (method === 'notifications/message') {
      if (this.modern && this.#callOf(server, related)?.wantsLog(params.level) !== true) return
      this.#tell(server, method, params, (text) => this.#sendFor(server, text, related))
    } else if (method === 'notifications/elicitation/complete' && !this.modern) {
      this.#tell(server, method, params, (text) => this.#sendFor(server, text, related))
    }
  }

  /** In the order in which it was said, each as policies left it. */
  #tell(server: McpServerRecord, method: string, params: Json, send: (text: string, governed: Json) => void): void {
    const taken = this.#connections.get(server.id)?.notices.add(params, async () => {
      const governed = await this.#options.governor.tell(this, { server, method, params })
      if (governed !== null) send(notificationText(method, governed), governed)
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
      for (const id of this.#connections.ids()) this.#pass(id, method, {})
    }
  }

  #pass(serverId: string, method: string, params: Json): void {
    const opened = this.#connections.get(serverId)
    // A notification has no answer: that it did not arrive is nobody's to hear.
    opened?.opening.then((connection) => connection.notify(method, params)).catch(() => undefined)
  }
}

interface Asked {
  readonly method: string
  readonly params: Json
  readonly signal: AbortSignal
  readonly related: unknown
}
