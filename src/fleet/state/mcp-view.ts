/**
 * The MCP servers of the state as a gateway reads them, with the approved digests of each. Read again only when a row
 * has changed. Their secrets stay encrypted until a server is connected.
 */
import type { Database } from 'bun:sqlite'
import type { StoredMcpServer } from '../../mcp/servers/server-source.ts'
import type { DataKeys } from './catalog-view.ts'

interface ServerRow {
  id: string
  name: string
  version: number
  url: string | null
  command: string | null
  sealed_credentials: string | null
  timeouts: string | null
  approval: string
  tools: string
}

/** What the row has in other forms than it is read. */
interface GovernedRow {
  quarantined: number
  price_per_call: number | null
  requests_per_minute: number | null
  tool_limits: string | null
}

const newestVersions = `select (select max(version) from mcp_servers) as servers,
  (select max(version) from mcp_approvals) as approvals, (select max(version) from mcp_baselines) as baselines`

export class McpView {
  readonly #listeners: (() => void)[] = []
  #newest = ''
  #keys: DataKeys | null = null
  #servers: readonly StoredMcpServer[] = []

  servers(): readonly StoredMcpServer[] {
    return this.#servers
  }

  /** Servers whose data key this gateway does not have yet. */
  get closed(): readonly string[] {
    return this.#servers.filter(({ dataKey }) => dataKey === null).map(({ id }) => id)
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Call inside a read transaction. `anew`: the file or its history is another one. */
  read(database: Database, keys: DataKeys, anew: boolean): void {
    const newest = JSON.stringify(database.query(newestVersions).get())
    if (!anew && newest === this.#newest && keys === this.#keys) return
    this.#servers = readServers(database, keys)
    this.#newest = newest
    this.#keys = keys
    setImmediate(() => {
      for (const listener of this.#listeners) listener()
    })
  }
}

function readServers(database: Database, keys: DataKeys): StoredMcpServer[] {
  const approvals = Map.groupBy(
    database.query<Approval, []>('select server_id, id, digest from mcp_approvals where deleted = 0').all(),
    ({ server_id }) => server_id,
  )
  const baselines = Map.groupBy(
    database.query<Baseline, []>('select server_id, kind, made_at from mcp_baselines where deleted = 0').all(),
    ({ server_id }) => server_id,
  )
  return database
    .query<ServerRow & GovernedRow, []>(
      `select id, name, version, url, command, sealed_credentials, timeouts, approval, tools, quarantined,
        price_per_call, requests_per_minute, tool_limits
        from mcp_servers where deleted = 0 and enabled = 1 order by position, id`,
    )
    .all()
    .map(
      ({
        sealed_credentials: sealedCredentials,
        quarantined,
        price_per_call,
        requests_per_minute,
        tool_limits,
        ...row
      }) => ({
        ...row,
        sealedCredentials,
        quarantined: quarantined === 1,
        pricePerCall: price_per_call,
        requestsPerMinute: requests_per_minute,
        toolLimits: tool_limits,
        dataKey: keys[row.id] ?? null,
        approved: new Set(approvals.get(row.id)?.map(({ digest }) => digest)),
        known: new Set(approvals.get(row.id)?.map(({ id }) => id)),
        baselines: new Map(baselines.get(row.id)?.map(({ kind, made_at: at }) => [kind, at])),
      }),
    )
}

interface Approval {
  server_id: string
  id: string
  digest: string
}

interface Baseline {
  server_id: string
  kind: string
  made_at: number
}
