/**
 * One caller's session with one MCP server. `initialize` opens it in the caller's protocol version. After a break the
 * next request opens it again, with a growing delay after failures, and the caller is told to list again. A request
 * that ran when the connection broke is not repeated, because it may have had its effect. A request that the server
 * refused because it had forgotten the session had none, and is sent once more.
 *
 * A server of 2026-07-28 has no sessions (`generation.ts`). Then each request stands for itself, changes are heard by
 * `listening.ts`, and a caller with sessions is asked by requests what the server needs before it can answer.
 */
import { randomUUID } from 'node:crypto'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { rpcCodes } from '../../lib/json/json-rpc.ts'
import { version as productVersion } from '../../version.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord } from '../connection.ts'
import { inputRequests, isInputRequired } from '../input-required.ts'
import { McpError } from '../mcp-error.ts'
import { isJson, modernVersion, protocolVersions } from '../protocol.ts'
import { requireKnownType } from '../result-form.ts'
import { discover, type KnownGeneration, metadataOf } from './generation.ts'
import { Listening } from './listening.ts'
import { Peer, type PeerCall } from './peer.ts'
import { type Receiver, SessionForgotten, SessionWanted, type Transport } from './transport.ts'

const firstRestMilliseconds = 500
const longestRestMilliseconds = 30_000
/** The limit of what is repeated after a reconnection: subscriptions and the log level. */
const mostRemembered = 1000
/** How often a server may ask its caller during one request. */
const mostRounds = 10

export interface ConnectionOptions {
  record: McpServerRecord
  caller: McpCaller
  clock: Clock
  connectMilliseconds: number
  totalMilliseconds: number
  /** Opens the transport. Throws a Failure when the server must not be used. */
  open(receiver: Receiver): Transport
  /** Throws `mcp.server_unavailable` while the circuit of the server is open. */
  mayTry(): void
  /** Reports the result of an attempt or request. */
  tried(outcome: 'answered' | 'failed'): void
  /** What is known of the server's version. */
  generation: KnownGeneration
  random(): number
  /** Called once, when it is closed. */
  onClose(): void
  /** Called for each message of the server that is discarded. */
  onUnsolicited(): void
}

interface Opened {
  peer: Peer
  /** Null: the server has sessions. */
  listening: Listening | null
  capabilities: Json
  instructions: string | null
}

export class ServerConnection implements McpConnection {
  readonly server: McpServerRecord
  readonly #options: ConnectionOptions
  readonly #remembered = new Map<string, { method: string; params: Json | undefined }>()
  #opened: Opened
  #opening: Promise<Opened> | null = null
  #breaks = 0
  #restsUntil = 0
  #closing: Promise<void> | null = null

  private constructor(options: ConnectionOptions, opened: Opened) {
    this.server = options.record
    this.#options = options
    this.#opened = opened
  }

  /** Rejects with a Failure, or with the server's McpError. */
  static async open(options: ConnectionOptions): Promise<ServerConnection> {
    return new ServerConnection(options, await openPeer(options))
  }

  get modern(): boolean {
    return this.#opened.peer.modern
  }

  get capabilities(): Json {
    return this.#opened.capabilities
  }

  get instructions(): string | null {
    return this.#opened.instructions
  }

  async request(method: string, params: Json | undefined, call: PeerCall): Promise<Json> {
    const result = await this.#answerTo(method, params, call)
    this.#options.tried('answered')
    this.#breaks = 0
    if (method === 'logging/setLevel') this.#remember(method, method, params)
    if (method === 'resources/subscribe') this.#remember(`subscribe ${params?.uri}`, method, params)
    if (method === 'resources/unsubscribe') this.#remembered.delete(`subscribe ${params?.uri}`)
    return result
  }

  async notify(method: string, params: Json | undefined): Promise<void> {
    await this.#opened.peer.notify(method, params)
  }

  /** Resolves when it is closed, by whichever side. */
  close(): Promise<void> {
    this.#opened.listening?.close()
    this.#closing ??= this.#opened.peer.close().finally(() => this.#options.onClose())
    return this.#closing
  }

  /** Asks a caller with sessions what a server without them needs, and sends the request again with the answers. */
  async #answerTo(method: string, params: Json | undefined, call: PeerCall): Promise<Json> {
    const { caller } = this.#options
    let input: Json = {}
    for (let round = 0; round < mostRounds; round++) {
      const result = await this.#requestOnce(method, { ...params, ...input }, call, 'again')
      if (!this.modern) return result
      requireKnownType(this.server, method, result)
      if (caller.protocolVersion === modernVersion) return result
      if (!isInputRequired(result)) return withoutHints(result)
      const { requestState } = result
      const inputResponses = await answersOf(caller, inputRequests(result, caller.capabilities), call)
      input = { inputResponses, ...(requestState !== undefined && { requestState }) }
    }
    throw new McpError(rpcCodes.internalError, 'The MCP server asks its caller again and again')
  }

  async #requestOnce(
    method: string,
    params: Json | undefined,
    call: PeerCall,
    forgotten: 'again' | 'fail',
  ): Promise<Json> {
    const { peer, listening } = await this.#ensure()
    if (listening !== null && method === 'resources/subscribe') listening.subscribe(params?.uri)
    if (listening !== null && method === 'resources/unsubscribe') listening.unsubscribe(params?.uri)
    if (listening !== null && sessionMethods.has(method)) return {}
    try {
      return await peer.request(method, params, call)
    } catch (error) {
      if (error instanceof SessionForgotten || error instanceof SessionWanted) {
        this.#options.generation.set(null)
        listening?.close()
        await peer.close()
        if (forgotten === 'again') return await this.#requestOnce(method, params, call, 'fail')
        throw new Failure('mcp.server_error', { message: 'The MCP server forgets its sessions', cause: error })
      }
      if (error instanceof McpError) this.#options.tried('answered')
      else if (error !== peer.over && isServersFault(error)) this.#options.tried('failed')
      throw error
    }
  }

  async #ensure(): Promise<Opened> {
    if (this.#closing !== null) throw new Failure('mcp.server_unavailable', { message: 'The session has ended' })
    if (this.#opened.peer.over === null) return this.#opened
    this.#opening ??= this.#reopen().finally(() => {
      this.#opening = null
    })
    return await this.#opening
  }

  async #reopen(): Promise<Opened> {
    const { clock, caller } = this.#options
    if (clock.monotonic() < this.#restsUntil) throw new Failure('mcp.server_unavailable', { retryAfter: 1 })
    const rest = Math.min(longestRestMilliseconds, firstRestMilliseconds * 2 ** this.#breaks)
    this.#restsUntil = this.#breaks === 0 ? 0 : clock.monotonic() + rest
    this.#breaks = Math.min(this.#breaks + 1, 10)
    this.#opened.listening?.close()
    this.#options.generation.set(null)
    const opened = await openPeer(this.#options)
    if (this.#closing !== null) {
      await opened.peer.close()
      throw new Failure('mcp.server_unavailable', { message: 'The session has ended' })
    }
    this.#opened = opened
    const signal = AbortSignal.timeout(this.#options.connectMilliseconds)
    for (const { method, params } of this.#remembered.values()) {
      if (opened.listening !== null) opened.listening.subscribe(params?.uri)
      // A subscription that the server no longer accepts is dropped.
      else await opened.peer.request(method, params, { signal }).catch(() => undefined)
    }
    for (const kind of ['tools', 'prompts', 'resources']) {
      if (opened.capabilities[kind] !== undefined) caller.notify(`notifications/${kind}/list_changed`, undefined)
    }
    return opened
  }

  #remember(key: string, method: string, params: Json | undefined): void {
    if (this.#remembered.size < mostRemembered) this.#remembered.set(key, { method, params })
  }
}

/** What a server without sessions is not told; it is told what matters with each request. */
const sessionMethods: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
])

/** The caller's answers to what the server needs. Rejects with the caller's McpError. */
async function answersOf(caller: McpCaller, asked: ReadonlyMap<string, Json>, call: PeerCall): Promise<Json> {
  const answers = [...asked].map(async ([key, { method, params }]) => {
    const given = isJson(params) ? params : {}
    // An older caller knows a page to open by an id.
    const sent = given.mode === 'url' ? { elicitationId: randomUUID(), ...given } : given
    return [key, await caller.request(String(method), sent, call)] as const
  })
  return Object.fromEntries(await Promise.all(answers))
}

/** Only callers of 2026-07-28 read these members. */
function withoutHints({ resultType: _type, ttlMs: _time, cacheScope: _scope, ...result }: Json): Json {
  return result
}

/** Opens the connection in the version of the server, which is asked for it when it is not known. */
async function openPeer(options: ConnectionOptions): Promise<Opened> {
  options.mayTry()
  const { generation } = options
  const isKnown = generation.get() === 'legacy'
  const probed = isKnown ? null : await probe(options)
  if (probed !== null && probed.opened !== null) return probed.opened
  const opened = await begin(options, probed?.peer ?? peerOf(options, () => options.tried('failed')))
  generation.set('legacy')
  return opened
}

const peerOf = (options: ConnectionOptions, onBroken: () => void): Peer => {
  const { caller, clock, record, totalMilliseconds, open, onUnsolicited } = options
  return new Peer({
    ...{ caller, clock, idleMilliseconds: record.timeoutMilliseconds, totalMilliseconds },
    ...{ open, onBroken, onUnsolicited },
  })
}

/** An opened connection to a server without sessions; otherwise a peer to begin a session by, null where it broke. */
async function probe(options: ConnectionOptions): Promise<{ opened: Opened | null; peer: Peer | null }> {
  const { caller, generation, connectMilliseconds, record, random } = options
  let isProbed = false
  const peer = peerOf(options, () => {
    if (isProbed) options.tried('failed')
  })
  peer.speakFor(metadataOf(caller))
  try {
    const discovered = await discover(peer, connectMilliseconds / 2)
    isProbed = true
    if (discovered === null) {
      peer.speakFor(null)
      return { opened: null, peer: peer.over === null ? peer : null }
    }
    const { capabilities, instructions } = discovered
    generation.set('modern')
    options.tried('answered')
    const missed = (methods: readonly string[]) => {
      for (const method of methods) caller.notify(method, undefined)
    }
    const listening = new Listening({ peer, capabilities, missed, random })
    return { opened: { peer, listening, capabilities, instructions: textOrNull(instructions) }, peer }
  } catch (error) {
    await peer.close()
    // Some commands with sessions end at a request that comes before `initialize`.
    if (record.origin === null && error === peer.over) return { opened: null, peer: null }
    if (isServersFault(error)) options.tried('failed')
    throw error
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

async function begin(options: ConnectionOptions, peer: Peer): Promise<Opened> {
  try {
    const opened = await initialize(peer, options)
    options.tried('answered')
    return opened
  } catch (error) {
    const broken = peer.over !== null
    await peer.close()
    // A broken connection was counted already.
    if (!broken && isServersFault(error)) options.tried('failed')
    throw error
  }
}

/** Lifecycle, Initialization: requests the caller's version; the server's answer must be a supported one. */
async function initialize(peer: Peer, { caller, connectMilliseconds }: ConnectionOptions): Promise<Opened> {
  const asked = protocolVersions.find((known) => known === caller.protocolVersion) ?? protocolVersions[0]
  const deadline = AbortSignal.timeout(connectMilliseconds)
  const params = {
    protocolVersion: asked,
    capabilities: caller.capabilities,
    clientInfo: { name: 'gatehouse', version: productVersion },
  }
  const answer = await peer.request('initialize', params, { signal: deadline }).catch((error: unknown) => {
    throw deadline.aborted ? new Failure('mcp.server_timeout') : error
  })
  const { protocolVersion, capabilities, instructions } = answer
  const agreed = protocolVersions.find((known) => known === protocolVersion)
  if (agreed === undefined || !isJson(capabilities)) {
    throw new Failure('mcp.server_error', { message: 'The MCP server supports none of the known protocol versions' })
  }
  peer.ready(agreed)
  await peer.notify('notifications/initialized', undefined)
  return { peer, listening: null, capabilities, instructions: textOrNull(instructions) }
}

/** Whether the error shows a fault of the server, not an open circuit or a cancellation. */
const isServersFault = (error: unknown): boolean =>
  error instanceof Failure && ['mcp.server_unreachable', 'mcp.server_timeout', 'mcp.server_error'].includes(error.code)
