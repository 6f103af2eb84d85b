/** The MCP servers of the state as a gateway reads them; a fleet worker implements it. */
import type { OfferKind } from '../connection.ts'
import type { OfferReport } from '../offers/offer-report.ts'
import type { PersonTokenReply, PersonTokenRequest } from '../personal/person-token.ts'

export interface StoredMcpServer {
  id: string
  name: string
  version: number
  url: string | null
  /** JSON, as in the record. */
  command: string | null
  sealedCredentials: string | null
  /** Base64; null until the bootstrap has brought it. */
  dataKey: string | null
  /** JSON. */
  timeouts: string | null
  approval: string
  quarantined: boolean
  tools: string
  /** Nano-dollars. */
  pricePerCall: number | null
  requestsPerMinute: number | null
  /** JSON (`toolLimitsSchema`). */
  toolLimits: string | null
  /** Digests of the definitions that may be shown. */
  approved: ReadonlySet<string>
  /** Offers with an approved definition, by `offerId`. */
  known: ReadonlySet<string>
  /** When a kind was first reported, in milliseconds since the epoch. */
  baselines: ReadonlyMap<string, number>
}

export interface McpSource {
  /** The enabled servers in creation order; a changed server is a new object. */
  servers(): readonly StoredMcpServer[]
  /** Calls the listener some time after the servers have changed. */
  onChange(listener: () => void): void
  /** Reports to the control plane. Rejects when it is unreachable. */
  report(report: OfferReport & { kind: OfferKind }): Promise<void>
  /** Asks for the access token of a caller's own account. Rejects when the control plane is unreachable. */
  personToken(request: PersonTokenRequest): Promise<PersonTokenReply>
}
