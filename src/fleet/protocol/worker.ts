/**
 * What a gateway's hot path sees of the fleet: three things that answer from memory or one local read, and never
 * wait for a network. `fleet/outbox/outbox.ts`, `fleet/state/state-view.ts` and `fleet/agent/control-connection.ts` stand behind them.
 */

import type { Event } from '../../events/event.ts'
import type { Family } from '../../languages/families.ts'
import type { McpSource } from '../../mcp/servers/server-source.ts'
import type { PolicySet } from '../../policies/chain.ts'
import type { Price } from '../../providers/prices/price.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Head } from '../../store/propagation.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Allowances } from '../../usage/allowance.ts'
import type { LimitSet } from '../../usage/limits.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import type { Rates } from '../../usage/rate/rates.ts'

/** The journal of one worker (fleet/outbox/README.md). All writes of one tick are one write to the file. */
export interface Journal {
  /**
   * Writes the open record of an exchange and sets aside the space of its outcome; resolves when it is committed.
   * Throws `event_outbox_full` before anything is written where space cannot be had. `interrupted` is the outcome that
   * a restart writes where none followed; its `settlements` are the full amounts that are reserved. `closingEvents` is how
   * many events may end the exchange, whose room is set aside: the outcome, attempts, decisions. `uses` are the slots of
   * limits a minute that it takes, which a restart reads.
   */
  open(exchangeId: string, interrupted: Event, closingEvents?: number, uses?: readonly RecordedUse[]): Promise<void>
  /**
   * Writes the events that end an opened exchange, its attempts first, its outcome last; resolves when committed. `uses`
   * is what its end changes of the slots that it took.
   */
  close(exchangeId: string, events: readonly Event[], uses?: readonly RecordedUse[]): Promise<void>
  /**
   * Writes the events of a request that was never opened: a refusal, or one that calls no provider. Throws
   * `event_outbox_full`.
   */
  refuse(events: readonly Event[]): Promise<void>
}

export interface CatalogModel {
  id: string
  providerId: string
  upstreamModel: string
  /** The families it serves, a text family among them also by translation; null where all that its provider's kind does. */
  families: readonly Family[] | null
  /** The operator's own price; null where the embedded table's holds. */
  price: Price | null
  maxOutputTokens: number | null
  /** Ids of the models that are tried after it, in order. */
  fallbacks: readonly string[]
  createdAt: number
}

/** What the gateway's own record says of it. */
export interface GatewayRecord {
  /** `user:<id>`, `team:<id>` or `organization`; null where the token decides. */
  spendOwner: string | null
  promptCaching: boolean
}

/** A reviewer's leave to send one request once (escalations/README.md); the account `grant/<id>` counts that. */
export interface Grant {
  id: string
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** The state that decisions are made by, as of `version`. */
export interface StateView {
  readonly version: number
  /** Null before the first load. */
  readonly head: Head | null
  /** By SHA-256 of the secret: one map look-up, or one indexed read on first use. Null where there is none. */
  token(hash: string): GovernedToken | null
  /** True from the instant a denial of this token arrived until the state read is at the denial's version. */
  denied(hash: string): boolean
  model(id: string): CatalogModel | null
  models(): readonly CatalogModel[]
  provider(id: string): Provider | null
  /** Providers in the order they were made; those that are closed too, without their credentials: `provider` has them not. */
  providers(): readonly Provider[]
  /** Ids of the providers that this gateway may use and whose key has not reached it yet. */
  readonly closedProviders: readonly string[]
  /** The policies of this gateway, compiled. */
  readonly policies: PolicySet
  /** One indexed read, for requests that a policy escalates only. */
  grant(tokenId: string, digest: string, now: number): Grant | null
  /** Budgets, consumer groups and access policies, by id and by whom they hold. */
  readonly limits: LimitSet
  readonly gateway: GatewayRecord
}

/** Whether the gateway may decide, and as what. */
export interface Standing {
  /** Empty until the first bootstrap has told it. */
  readonly gatewayId: string
  readonly gatewayUrl: string
  /** The control plane as others see it. */
  readonly baseUrl: string
  /** Names the token's resource in what a caller is told: `vrn:gatehouse:<organization id>:token/<id>`. */
  readonly organizationId: string
  /** Throws `not_ready` before the first state is loaded, `token_state_stale` past `max_staleness`. */
  assertCurrent(): void
  /** HMAC-SHA-256 of a request's bytes under the installation's prompt-hash key, as `<key id>:<hex>`. */
  promptHash(body: Uint8Array): string
}

export interface Readiness {
  ok: boolean
  /** In words, where not. */
  reason?: string
  /** In words, where requests are decided by a state without fresh news. */
  warning?: string
  /** Since the last fresh news of the primary; absent before the first. */
  staleness_seconds?: number
}

/** One number each for the gateway's `/metrics`; all are cheap to read. */
export interface WorkerCounters {
  /** Version of the state that decisions are made by. */
  readonly stateVersion: number
  /** Seconds since the last fresh news of the primary; infinite before the first. */
  readonly secondsSinceFresh: number
  /** 1 while the change stream is connected. */
  readonly connected: number
  /** Bytes of the outbox's segments on disk. */
  readonly outboxBytes: number
  /** Events written and not yet acknowledged by the control plane. */
  readonly outboxUnshipped: number
  /** Exchanges opened and not yet closed. */
  readonly openExchanges: number
  /** Tokens denied ahead of the state. */
  readonly pendingRevocations: number
  /** Token records held in memory. */
  readonly tokensInMemory: number
  /** Messages about limits sent to the control plane since the start. */
  readonly leaseMessages: number
  /** How often the state's checkpoint went behind one that was seen before. */
  readonly checkpointRegressions: number
  /** Starts of the replicator that were not the first; 0 where another process of this host keeps the state. */
  readonly replicatorRestarts: number
  /** Bytes of the state that came from the primary since the start. */
  readonly replicatedBytes: number
}

/** One worker of a gateway, as the rest of the gateway holds it; made by `startWorker`. */
export interface GatewayAgent {
  readonly journal: Journal
  readonly view: StateView
  readonly standing: Standing
  readonly allowances: Allowances
  readonly rates: Rates
  readonly counters: WorkerCounters
  /** The gateway's own time: monotonic between hellos, each of which brings the control plane's. */
  now(): number
  /** Whether requests can be decided, and by how old a state. */
  ready(): Readiness
  /** Calls the listener in the tick in which denials of these token hashes arrive. */
  onDenied(listener: (hashes: readonly string[]) => void): void
  /** Calls the listener, in the same tick, with those of them whose running requests must end. */
  onCut(listener: (hashes: readonly string[]) => void): void
  /** Ships what is left within a few seconds, closes the outbox cleanly and lets go of the data directory. */
  drain(): Promise<void>
}

/** What `startWorker` gives: a worker, with what the state says of MCP servers. */
export interface StartedWorker extends GatewayAgent {
  readonly mcp: McpSource
}
