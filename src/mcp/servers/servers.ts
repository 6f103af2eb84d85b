/**
 * The MCP servers of a gateway (`src/mcp/connection.ts`): opens connections from the records of the state. The cost of
 * a server is bounded: a circuit for each, a total number of child processes, and limits on what it may send and for
 * how long. Circuits and children are counted in this process only; other workers have their own.
 */
import { z } from 'zod'
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'
import { NamedCircuits } from '../../lib/circuits.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Fetch } from '../../providers/provider.ts'
import { callLimitsOf } from '../call-limits.ts'
import { ClientCredentials } from '../catalog/client-credentials.ts'
import { noServerCredentials, openServerCredentials, type ServerCredentials } from '../catalog/server-credentials.ts'
import type { McpCaller, McpServerRecord, McpServers, OfferKind } from '../connection.ts'
import { Offers } from '../offers/offers.ts'
import type { AccessTokens } from '../personal/person-token.ts'
import { PersonTokens } from '../personal/person-tokens.ts'
import { CommandTransport } from './command-transport.ts'
import type { KnownGeneration } from './generation.ts'
import { HttpTransport } from './http-transport.ts'
import { ServerConnection } from './server-connection.ts'
import type { McpSource, StoredMcpServer } from './server-source.ts'
import type { Receiver, Transport } from './transport.ts'

export interface McpServersOptions {
  source: McpSource
  settings: Pick<
    Settings,
    | 'mcp_local_commands'
    | 'mcp_children'
    | 'mcp_result_bytes'
    | 'connect_timeout_seconds'
    | 'idle_timeout_seconds'
    | 'total_timeout_seconds'
    | 'circuit_failures'
    | 'circuit_open_seconds'
  >
  fetch: Fetch
  clock: Clock
  log: Log
  /** The PATH by which local commands are found. */
  path: string
  /** For jitter only. */
  random(): number
}

const timeoutsSchema = z
  .object({
    connect_seconds: z.number().optional(),
    idle_seconds: z.number().optional(),
    total_seconds: z.number().optional(),
  })
  .catch({})
const commandSchema = z.object({ program: z.string(), args: z.array(z.string()) })

export class GatewayMcpServers implements McpServers {
  readonly #options: McpServersOptions
  readonly #offers: Offers
  readonly #circuits: NamedCircuits
  readonly #records = new WeakMap<StoredMcpServer, McpServerRecord>()
  readonly #tokens = new Map<string, { version: number; tokens: ClientCredentials }>()
  readonly #generations = new Map<string, { version: number; generation: 'modern' | 'legacy' }>()
  readonly #personTokens: PersonTokens
  readonly #connections = new Set<ServerConnection>()
  readonly #listeners = new Set<() => void>()
  readonly #children = new Set<CommandTransport>()
  #strays = 0
  #closed = false

  constructor(options: McpServersOptions) {
    this.#options = options
    this.#offers = new Offers(options)
    this.#circuits = new NamedCircuits(options.settings)
    this.#personTokens = new PersonTokens({
      ask: (request) => options.source.personToken(request),
      clock: options.clock,
    })
    options.source.onChange(() => this.#changed())
  }

  get unsolicited(): number {
    return this.#strays
  }

  list(): readonly McpServerRecord[] {
    return this.#options.source.servers().map((server) => this.#recordOf(server))
  }

  async connect(record: McpServerRecord, caller: McpCaller): Promise<ServerConnection> {
    const { clock, settings } = this.#options
    const stored = this.#stored(record)
    if (stored.quarantined) throw new Failure('mcp.server_quarantined')
    const timeouts = timeoutsOf(stored)
    const connectMilliseconds = 1000 * (timeouts.connect_seconds ?? settings.connect_timeout_seconds)
    const connection = await ServerConnection.open({
      ...{ record, caller, clock, connectMilliseconds },
      generation: this.#generationOf(record),
      random: this.#options.random,
      totalMilliseconds: 1000 * (timeouts.total_seconds ?? settings.total_timeout_seconds),
      open: (receiver) => this.#open(this.#stored(record), caller, receiver, connectMilliseconds),
      mayTry: () => {
        this.#stored(record)
        if (this.#circuits.allows(record.id, clock.monotonic())) return
        throw new Failure('mcp.server_unavailable', { retryAfter: settings.circuit_open_seconds })
      },
      tried: (outcome) => {
        if (outcome === 'answered') this.#circuits.answered(record.id)
        else this.#circuits.failed(record.id, clock.monotonic())
      },
      onClose: () => this.#connections.delete(connection),
      onUnsolicited: () => {
        this.#strays += 1
      },
    })
    this.#connections.add(connection)
    return connection
  }

  isModern(record: McpServerRecord): boolean {
    return this.#generationOf(record).get() === 'modern'
  }

  approved<Offer extends { name: string }>(
    record: McpServerRecord,
    kind: OfferKind,
    offers: readonly Offer[],
  ): Offer[] {
    const stored = this.#options.source.servers().find(({ id }) => id === record.id)
    return stored === undefined ? [] : this.#offers.approved(stored, kind, offers)
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Ends all connections and child processes, also those that are being opened; resolves when they have ended. */
  async close(): Promise<void> {
    this.#closed = true
    this.#offers.close()
    await Promise.all([...this.#connections, ...this.#children].map((each) => each.close()))
  }

  /** Closes connections of a server that was disabled, changed or removed. */
  #changed(): void {
    const versions = new Map(this.#options.source.servers().map(({ id, version }) => [id, version]))
    for (const id of this.#generations.keys()) if (!versions.has(id)) this.#generations.delete(id)
    for (const id of this.#tokens.keys()) if (!versions.has(id)) this.#tokens.delete(id)
    for (const connection of this.#connections) {
      const { id, version } = connection.server
      if (versions.get(id) !== version) void connection.close()
    }
    for (const listener of this.#listeners) listener()
  }

  /** What is remembered of the version that this server speaks, for as long as its record stays as it is. */
  #generationOf({ id, version }: McpServerRecord): KnownGeneration {
    return {
      get: () => {
        const known = this.#generations.get(id)
        return known?.version === version ? known.generation : null
      },
      set: (generation) => {
        if (generation === null) this.#generations.delete(id)
        else this.#generations.set(id, { version, generation })
      },
    }
  }

  #recordOf(server: StoredMcpServer): McpServerRecord {
    const known = this.#records.get(server)
    if (known !== undefined) return known
    const seconds = timeoutsOf(server).idle_seconds ?? this.#options.settings.idle_timeout_seconds
    const { id, name, version, url } = server
    const origin = url === null ? null : (URL.parse(url)?.origin ?? null)
    const record: McpServerRecord = {
      ...{ id, name, version, timeoutMilliseconds: 1000 * seconds, approval: approvalOf(server), origin },
      quarantined: server.quarantined,
      tools: server.tools === 'searched' ? 'searched' : 'listed',
      callLimits: callLimitsOf(server),
    }
    this.#records.set(server, record)
    return record
  }

  /** The server of the record. Throws when it has changed since. */
  #stored({ id, version }: McpServerRecord): StoredMcpServer {
    const stored = this.#options.source.servers().find((server) => server.id === id)
    if (stored?.version === version) return stored
    throw new Failure('mcp.server_unavailable', { message: 'The MCP server was changed, disabled or removed' })
  }

  #open(stored: StoredMcpServer, caller: McpCaller, receiver: Receiver, tellMilliseconds: number): Transport {
    if (this.#closed) throw new Failure('mcp.server_unreachable', { message: 'The gateway stops' })
    const credentials = credentialsOf(stored)
    if (stored.url === null) return this.#start(stored, credentials, receiver)
    const { fetch, settings, random } = this.#options
    return new HttpTransport(
      {
        url: stored.url,
        headers: credentials.headers,
        tokens: this.#tokensOf(stored, credentials, caller),
        notifyMilliseconds: tellMilliseconds,
        limit: settings.mcp_result_bytes,
        fetch,
        random,
      },
      receiver,
    )
  }

  #start(stored: StoredMcpServer, { environment }: ServerCredentials, receiver: Receiver): Transport {
    const { settings, path, log } = this.#options
    if (settings.mcp_local_commands !== 'allowed') throw new Failure('mcp.commands_refused')
    if (this.#children.size >= settings.mcp_children) throw new Failure('mcp.too_many_children', { retryAfter: 1 })
    const { program, args } = commandSchema.parse(JSON.parse(stored.command ?? 'null'))
    const transport = new CommandTransport(
      {
        ...{ server: stored.name, program, args, environment, path, log },
        limit: settings.mcp_result_bytes,
        onEnd: () => this.#children.delete(transport),
      },
      receiver,
    )
    this.#children.add(transport)
    return transport
  }

  /** All sessions of a gateway share a server's access token, unless each person has one. */
  #tokensOf(stored: StoredMcpServer, { oauth, personal }: ServerCredentials, caller: McpCaller): AccessTokens | null {
    const { id, name, version, url } = stored
    if (personal !== undefined && url !== null) return this.#personTokens.of({ id, name, url }, caller)
    if (oauth === null) return null
    const known = this.#tokens.get(id)
    if (known?.version === version) return known.tokens
    const tokens = new ClientCredentials(oauth, this.#options)
    this.#tokens.set(id, { version, tokens })
    return tokens
  }
}

const approvalOf = ({ approval }: StoredMcpServer): McpServerRecord['approval'] =>
  approval === 'first_use' ? 'first_use' : 'required'

const timeoutsOf = ({ timeouts }: StoredMcpServer) => timeoutsSchema.parse(JSON.parse(timeouts ?? '{}'))

function credentialsOf({ id, dataKey, sealedCredentials: sealed }: StoredMcpServer): ServerCredentials {
  if (sealed === null) return noServerCredentials
  if (dataKey === null) {
    throw new Failure('mcp.server_unavailable', {
      message: 'The key of the MCP server has not reached this gateway yet',
    })
  }
  return openServerCredentials(Buffer.from(dataKey, 'base64'), id, sealed)
}
