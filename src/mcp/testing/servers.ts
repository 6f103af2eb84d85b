/** For tests: the servers of a gateway on a state that is a list, and a caller that remembers what it was told. */
import { settingsSchema } from '../../config.ts'
import { Failure } from '../../failure.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { noServerCredentials, type ServerCredentials, sealServerCredentials } from '../catalog/server-credentials.ts'
import type { Json, McpCaller } from '../connection.ts'
import type { OfferReport } from '../offers/offer-report.ts'
import type { PersonTokenReply, PersonTokenRequest } from '../personal/person-token.ts'
import type { StoredMcpServer } from '../servers/server-source.ts'
import { GatewayMcpServers, type McpServersOptions } from '../servers/servers.ts'

const dataKey = new Uint8Array(32).fill(7)

export function storedServer(
  fields: Partial<StoredMcpServer> = {},
  credentials?: Partial<ServerCredentials>,
): StoredMcpServer {
  const id = fields.id ?? '01990000-0000-7000-8000-00000000000a'
  return {
    id,
    name: 'one',
    version: 1,
    url: null,
    command: null,
    sealedCredentials:
      credentials === undefined ? null : sealServerCredentials(dataKey, id, { ...noServerCredentials, ...credentials }),
    dataKey: Buffer.from(dataKey).toString('base64'),
    timeouts: null,
    approval: 'first_use',
    quarantined: false,
    tools: 'listed',
    pricePerCall: null,
    requestsPerMinute: null,
    toolLimits: null,
    approved: new Set(),
    known: new Set(),
    baselines: new Map(),
    ...fields,
  }
}

export class TestSource {
  readonly reports: OfferReport[] = []
  /** By a caller's credential. */
  readonly connections = new Map<string, PersonTokenReply>()
  unreachable = false
  /** The kind of which it takes no report. */
  refuses: string | null = null
  #servers: readonly StoredMcpServer[]
  #listener: () => void = () => undefined

  constructor(servers: readonly StoredMcpServer[]) {
    this.#servers = servers
  }

  servers(): readonly StoredMcpServer[] {
    return this.#servers
  }

  onChange(listener: () => void): void {
    this.#listener = listener
  }

  async report(report: OfferReport): Promise<void> {
    if (this.unreachable) throw new Error('Out of reach')
    if (report.kind === this.refuses) throw new Failure('invalid_parameter')
    this.reports.push(structuredClone(report))
  }

  /** Gives each caller a token of their own. */
  async personToken({ credential }: PersonTokenRequest): Promise<PersonTokenReply> {
    return (
      this.connections.get(credential) ?? { status: 'not_connected', connect_url: 'https://console.test/connections' }
    )
  }

  change(servers: readonly StoredMcpServer[]): void {
    this.#servers = servers
    this.#listener()
  }
}

export function gatewayServers(
  servers: readonly StoredMcpServer[],
  settings: Record<string, unknown> = {},
  options: Partial<McpServersOptions> = {},
) {
  const source = new TestSource(servers)
  const made = new GatewayMcpServers({
    source,
    settings: settingsSchema.parse(settings),
    fetch,
    clock: systemClock,
    log: silentLog,
    path: process.env.PATH ?? '',
    random: () => 0.5,
    ...options,
  })
  return { source, servers: made }
}

export class TestCaller implements McpCaller {
  readonly protocolVersion: string
  readonly capabilities: Json
  readonly told: [method: string, params: Json | undefined][] = []
  answer: (method: string, params: Json | undefined, signal: AbortSignal) => Json | Promise<Json> = () => ({})

  constructor(capabilities: Json = {}, protocolVersion = '2025-11-25') {
    this.capabilities = capabilities
    this.protocolVersion = protocolVersion
  }

  async request(method: string, params: Json | undefined, { signal }: { signal: AbortSignal }): Promise<Json> {
    return await this.answer(method, params, signal)
  }

  credential() {
    return { hash: 'a'.repeat(64), secret: 'shown' }
  }

  notify(method: string, params: Json | undefined): void {
    this.told.push([method, params])
  }
}
