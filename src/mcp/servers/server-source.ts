/** What the state says of MCP servers, as a gateway has read it; a worker of the fleet stands behind it. */
import type { OfferKind } from '../connection.ts'
import type { OfferReport } from '../offers/offer-report.ts'

export interface StoredMcpServer {
  id: string
  name: string
  version: number
  url: string | null
  /** JSON, as the record has it. */
  command: string | null
  sealedCredentials: string | null
  /** Base64; null until bootstrap has brought it. */
  dataKey: string | null
  /** JSON. */
  timeouts: string | null
  approval: string
  /** Digests of the definitions that may be shown. */
  approved: ReadonlySet<string>
  /** Which things have an approved definition, by `offerId`. */
  known: ReadonlySet<string>
  /** When a kind was first told of, by kind: milliseconds since the epoch. */
  baselines: ReadonlyMap<string, number>
}

export interface McpSource {
  /** Those that are enabled, in the order they were made; a change is another object. */
  servers(): readonly StoredMcpServer[]
  /** Calls the listener some time after the servers have changed. */
  onChange(listener: () => void): void
  /** Tells the control plane. Rejects where it cannot be reached. */
  report(report: OfferReport & { kind: OfferKind }): Promise<void>
}
