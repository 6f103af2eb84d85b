/**
 * What the hot path uses of the fleet: three interfaces that answer from memory or one local read and never wait for a
 * network. Implemented in `fleet/outbox/outbox.ts`, `fleet/state/state-view.ts` and
 * `fleet/agent/control-connection.ts`.
 */

import type { Event } from '../../events/event.ts'
import type { LogRecord } from '../../events/log/record.ts'
import type { Family } from '../../languages/families.ts'
import type { McpSource } from '../../mcp/servers/server-source.ts'
import type { PolicySet } from '../../policies/chain.ts'
import type { TargetStrategy } from '../../providers/catalog/target-strategy.ts'
import type { Price } from '../../providers/prices/price.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Head } from '../../store/propagation.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { BatchLedger } from '../../usage/batches/batch-protocol.ts'
import type { LimitSet } from '../../usage/limits.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import type { Rates } from '../../usage/rate/rates.ts'
import type { UsageLimits } from '../../usage/usage-limits.ts'
import type { WorkloadIdentity } from '../../workloads/workload-identity.ts'
import type { TargetHealth } from './wire.ts'

/** The journal of one worker (fleet/outbox/README.md). All writes of one tick are one write to the file. */
/** A value as JSON text. Every text in it is well-formed Unicode (lib/json/well-formed-json.ts). */
export type JsonOf<Value> = string & { readonly jsonOf?: Value }

export interface Journal {
  /**
   * Writes the open record of an exchange and reserves space for its outcome. Resolves when it is committed. Throws
   * `event_outbox_full`, before anything is written, if there is no space. `interrupted` is the outcome that a restart
   * writes if none followed; its `settlements` are the full reserved amounts. `innerEvents` is how many attempts and
   * decisions its record may hold. `uses` are the slots of limits a minute that it takes, for a restart.
   */
  open(
    exchangeId: string,
    interrupted: JsonOf<Event>,
    innerEvents?: number,
    uses?: readonly RecordedUse[],
  ): Promise<void>
  /**
   * Writes the record that ends an opened exchange, with so many attempts and decisions. Resolves when committed.
   * `uses` are the corrections of the slots that it took.
   */
  close(
    exchangeId: string,
    record: JsonOf<LogRecord>,
    innerEvents: number,
    uses?: readonly RecordedUse[],
  ): Promise<void>
  /**
   * Writes the record of a request that was never opened: it was refused, or calls no provider. Throws
   * `event_outbox_full`.
   */
  refuse(record: LogRecord): Promise<void>
}

export interface CatalogModel {
  id: string
  providerId: string
  upstreamModel: string
  /** The families it serves, including text families by translation; null for all that its provider's kind serves. */
  families: readonly Family[] | null
  /** The operator's own price; null if the embedded table's applies. */
  price: Price | null
  maxOutputTokens: number | null
  /** Ids of the models to try after it, in order. */
  fallbacks: readonly string[]
  /** A translation refuses what its provider lacks, also where a lenient one would leave it out. */
  isTranslatedStrictly: boolean
  createdAt: number
  /** Where a share of its requests is sent a second time; null for most. */
  shadow: ShadowTarget | null
  /** How one of its targets is chosen. */
  strategy: TargetStrategy
  /** Its targets in the order of their tiers, each as a record of the same id; null where it has only this one. */
  targets: readonly CatalogModel[] | null
  /** As one of several targets: the lowest tier is used first. */
  tier: number
  weight: number
}

/** A second target, whose answers no caller sees (gateway/shadow/README.md). */
export interface ShadowTarget {
  providerId: string
  /** Null for the same name as at the model's own provider. */
  upstreamModel: string | null
  /** Percent of the model's requests. */
  share: number
}

/** The gateway's own record. */
export interface GatewayRecord {
  /** `user:<id>`, `team:<id>` or `organization`; null if the token decides. */
  spendOwner: string | null
  promptCaching: boolean
}

/**
 * A reviewer's permission to send one request once (escalations/README.md). The account `grant/<id>` counts its use.
 */
export interface Grant {
  id: string
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** What coding agents get as their settings (managed-settings/README.md). */
export interface ManagedSettings {
  id: string
  /** Empty for everybody. */
  teamIds: readonly string[]
  /** JSON with the members of each object in order. */
  settings: string
  checksum: string
}

/** The state that decisions use, as of `version`. */
export interface StateView {
  readonly version: number
  /** Null before the first load. */
  readonly head: Head | null
  /** By the SHA-256 of the secret: a map look-up, or an indexed read on first use. Null if there is none. */
  token(hash: string): GovernedToken | null
  /** True from the arrival of a revocation of this token until the state has reached the revocation's version. */
  isRevoked(hash: string): boolean
  model(id: string): CatalogModel | null
  models(): readonly CatalogModel[]
  provider(id: string): Provider | null
  /** Providers in order of creation, including closed ones without credentials, which `provider` leaves out. */
  providers(): readonly Provider[]
  /** Ids of the providers that this gateway may use but has no key for yet. */
  readonly closedProviders: readonly string[]
  /** The version at which kept answers were last cleared, by the model's id; `*` for all models. */
  readonly cacheClears: ReadonlyMap<string, number>
  /** The policies of this gateway, compiled. */
  readonly policies: PolicySet
  /** One indexed read, only for requests that a policy escalates; the newest first. */
  grants(tokenId: string, digest: string, now: number): readonly Grant[]
  /** One read, only for agents that ask for their settings; those that count first come first. */
  managedSettings(): readonly ManagedSettings[]
  /** Budgets, consumer groups and access policies, by id and by owner. */
  readonly limits: LimitSet
  readonly gateway: GatewayRecord
  /** Whose JWTs are accepted, by id. One that is disabled is not among them. */
  readonly workloadIdentities: ReadonlyMap<string, WorkloadIdentity>
}

/** Whether the gateway may decide, and its identity. */
export interface GatewayStatus {
  /** Empty until the first bootstrap. */
  readonly gatewayId: string
  readonly gatewayUrl: string
  /** The control plane's address for others. */
  readonly baseUrl: string
  /** Part of a token's resource name in errors: `vrn:gatehouse:<organization id>:token/<id>`. */
  readonly organizationId: string
  /** Throws `not_ready` before the first state is loaded, and `token_state_stale` after `max_staleness`. */
  assertCurrent(): void
  /** HMAC-SHA-256 of a request's bytes under the installation's prompt-hash key, as `<key id>:<hex>`. */
  promptHash(body: Uint8Array): string
  /**
   * Derived from the installation's key for prompt hashes, so all gateways have the same: it seals the ids of what
   * providers store (gateway/stored/sealed-id.ts).
   */
  readonly storedIdKey: Uint8Array
}

export interface Readiness {
  ok: boolean
  /** The reason in words, if not ok. */
  reason?: string
  /** A warning in words, if the state is not fresh. */
  warning?: string
  /** Seconds since the last fresh answer of the primary; absent before the first. */
  staleness_seconds?: number
}

/** The numbers for the gateway's `/metrics`. All are cheap to read. */
export interface WorkerCounters {
  /** Version of the state that decisions use. */
  readonly stateVersion: number
  /** Seconds since the last fresh answer of the primary; infinite before the first. */
  readonly secondsSinceFresh: number
  /** 1 while the change stream is connected. */
  readonly connected: number
  /** Bytes of the outbox's segments on disk. */
  readonly outboxBytes: number
  /** Records written and not yet acknowledged by the control plane. */
  readonly outboxUnacknowledged: number
  /** Exchanges opened and not yet closed. */
  readonly openExchanges: number
  /** Tokens refused by revocations that the state does not show yet. */
  readonly pendingRevocations: number
  /** Token records held in memory. */
  readonly tokensInMemory: number
  /** Messages about limits sent to the control plane since the start. */
  readonly leaseMessages: number
  /** How often the state's checkpoint went back behind a known one. */
  readonly checkpointRegressions: number
  /** Restarts of the replicator; 0 if another process of this host maintains the state. */
  readonly replicatorRestarts: number
  /** Bytes of the state that came from the primary since the start. */
  readonly replicatedBytes: number
}

/** One worker of a gateway, as the rest of the gateway uses it; made by `startWorker`. */
export interface GatewayAgent {
  readonly journal: Journal
  readonly view: StateView
  readonly status: GatewayStatus
  readonly usageLimits: UsageLimits
  readonly rates: Rates
  readonly batches: BatchLedger
  readonly counters: WorkerCounters
  /** The gateway's own time: monotonic, corrected by answers of the control plane. */
  now(): number
  /** Whether requests can be decided, and how stale the state is. */
  ready(): Readiness
  /** Resolves once it is ready for the first time. */
  untilReady(): Promise<void>
  /** Calls the listener in the tick in which revocations of these token hashes arrive. */
  onRevoked(listener: (hashes: readonly string[]) => void): void
  /** Where heartbeats read what was measured of targets. */
  reportTargets(read: () => readonly TargetHealth[]): void
  /** Calls the listener, in the same tick, with the hashes whose running requests must end. */
  onEndRequests(listener: (hashes: readonly string[]) => void): void
  /** Ships what is left within a few seconds, closes the outbox and releases the data directory. */
  drain(): Promise<void>
}

/** The result of `startWorker`: a worker, and the state's MCP servers. */
export interface StartedWorker extends GatewayAgent {
  readonly mcp: McpSource
}
