/**
 * One caller's session with one MCP server. `initialize` opens it in the caller's protocol version. After a break the
 * next request opens it again, with a growing delay after failures, and the caller is told to list again. A request
 * that ran when the connection broke is not repeated, because it may have had its effect. A request that the server
 * refused because it had forgotten the session had none, and is sent once more.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { version as productVersion } from '../../version.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson, protocolVersions } from '../protocol.ts'
import { Peer, type PeerCall } from './peer.ts'
import { type Receiver, SessionForgotten, type Transport } from './transport.ts'

const firstRestMilliseconds = 500
const longestRestMilliseconds = 30_000
/** The limit of what is repeated after a reconnection: subscriptions and the log level. */
const mostRemembered = 1000

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
  /** Called once, when it is closed. */
  onClose(): void
  /** Called for each message of the server that is discarded. */
  onUnsolicited(): void
}

interface Opened {
  peer: Peer
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
    return false
  }

  get capabilities(): Json {
    return this.#opened.capabilities
  }

  get instructions(): string | null {
    return this.#opened.instructions
  }

  async request(method: string, params: Json | undefined, call: PeerCall): Promise<Json> {
    const result = await this.#requestOnce(method, params, call, 'again')
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
    this.#closing ??= this.#opened.peer.close().finally(() => this.#options.onClose())
    return this.#closing
  }

  async #requestOnce(
    method: string,
    params: Json | undefined,
    call: PeerCall,
    forgotten: 'again' | 'fail',
  ): Promise<Json> {
    const { peer } = await this.#ensure()
    try {
      return await peer.request(method, params, call)
    } catch (error) {
      if (error instanceof SessionForgotten) {
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
    const opened = await openPeer(this.#options)
    if (this.#closing !== null) {
      await opened.peer.close()
      throw new Failure('mcp.server_unavailable', { message: 'The session has ended' })
    }
    this.#opened = opened
    const signal = AbortSignal.timeout(this.#options.connectMilliseconds)
    for (const { method, params } of this.#remembered.values()) {
      // A subscription that the server no longer accepts is dropped.
      await opened.peer.request(method, params, { signal }).catch(() => undefined)
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

async function openPeer(options: ConnectionOptions): Promise<Opened> {
  options.mayTry()
  const { caller, clock, record } = options
  const peer = new Peer({
    ...{ caller, clock, idleMilliseconds: record.timeoutMilliseconds, totalMilliseconds: options.totalMilliseconds },
    open: options.open,
    onBroken: () => options.tried('failed'),
    onUnsolicited: options.onUnsolicited,
  })
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
  return { peer, capabilities, instructions: typeof instructions === 'string' ? instructions : null }
}

/** Whether the error shows a fault of the server, not an open circuit or a cancellation. */
const isServersFault = (error: unknown): boolean =>
  error instanceof Failure && ['mcp.server_unreachable', 'mcp.server_timeout', 'mcp.server_error'].includes(error.code)
