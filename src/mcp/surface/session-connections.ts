/** A session's own connection to each server, opened when it first asks something of that server. */
import { Failure } from '../../failure.ts'
import { rpcCodes } from '../../lib/json/json-rpc.ts'
import type { McpConnection, McpServerRecord } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { logLevels } from '../protocol.ts'
import { ShownOffers } from './shown-offers.ts'
import { NotificationQueue } from './streams/notification-queue.ts'

interface Opened {
  readonly record: McpServerRecord
  readonly opening: Promise<McpConnection>
  /** What was shown of the server. */
  readonly seen: ShownOffers
  /** What the server says and the caller was not told yet. */
  readonly notices: NotificationQueue
  /** The level that the server was told. */
  level: string | null
}

export class SessionConnections {
  readonly #connect: (record: McpServerRecord) => Promise<McpConnection>
  readonly #opened = new Map<string, Opened>()
  #level: string | null = null
  #closed = false

  constructor(connect: (record: McpServerRecord) => Promise<McpConnection>) {
    this.#connect = connect
  }

  /** The servers that the session has used. */
  ids(): Iterable<string> {
    return this.#opened.keys()
  }

  get(serverId: string): Opened | undefined {
    return this.#opened.get(serverId)
  }

  /**
   * The connection, which may still be opening. Throws `mcp.server_unavailable` for an older record than that of the
   * connection that is there: a request that waited must not end the calls of others.
   */
  opened(record: McpServerRecord): Opened {
    const known = this.#opened.get(record.id)
    if (known !== undefined && known.record.version === record.version) return known
    if (known !== undefined && known.record.version > record.version)
      throw new Failure('mcp.server_unavailable', { message: 'The MCP server was changed, disabled or removed' })
    this.#disconnect(record.id)
    const opening = this.#open(record)
    const opened: Opened = { record, opening, seen: new ShownOffers(), notices: new NotificationQueue(), level: null }
    this.#opened.set(record.id, opened)
    opening.catch(() => {
      // Whoever asked is told why; here it only must not stand in the way of the next try.
      if (this.#opened.get(record.id) === opened) this.#opened.delete(record.id)
    })
    return opened
  }

  /** Closes what is no longer as these records say; of the others, what was shown is looked at again. */
  keep(records: readonly McpServerRecord[]): void {
    const present = new Map(records.map((record) => [record.id, record.version]))
    for (const { record } of this.#opened.values())
      if (present.get(record.id) !== record.version) this.#disconnect(record.id)
    for (const { seen } of this.#opened.values()) seen.forget()
  }

  /** Sets what is logged by the servers that the session uses, and by those it will use. */
  async setLevel(level: string): Promise<void> {
    this.#level = level
    // One that could not be opened is told when it is; why is said to who needs it.
    await Promise.allSettled([...this.#opened.values()].map(({ opening }) => opening.then((open) => tell(open, level))))
  }

  /** A server with sessions has one level for all calls, so it gets the most talkative that any call wants. */
  async tellCallLevel(connection: McpConnection, level: string | null): Promise<void> {
    const opened = this.#opened.get(connection.server.id)
    if (opened === undefined || level === null) return
    if (opened.level !== null && logLevels.indexOf(opened.level) <= logLevels.indexOf(level)) return
    opened.level = level
    await tell(connection, level)
  }

  close(): void {
    this.#closed = true
    for (const { opening } of this.#opened.values()) closeQuietly(opening)
    this.#opened.clear()
  }

  async #open(record: McpServerRecord): Promise<McpConnection> {
    const connection = await this.#connect(record)
    if (this.#closed) {
      closeQuietly(Promise.resolve(connection))
      throw new McpError(rpcCodes.internalError, 'The session has ended')
    }
    if (this.#level !== null) await tell(connection, this.#level)
    return connection
  }

  #disconnect(serverId: string): void {
    const opened = this.#opened.get(serverId)
    if (opened === undefined) return
    this.#opened.delete(serverId)
    closeQuietly(opened.opening)
  }
}

async function tell(connection: McpConnection, level: string): Promise<void> {
  if (connection.modern || connection.capabilities.logging === undefined) return
  const signal = AbortSignal.timeout(connection.server.timeoutMilliseconds)
  // A server that cannot say less is still of use.
  await connection.request('logging/setLevel', { level }, { signal }).catch(() => undefined)
}

function closeQuietly(opening: Promise<McpConnection>): void {
  // Nobody waits for its end; a server that does not take leave is the server's trouble.
  opening.then((connection) => connection.close()).catch(() => undefined)
}
