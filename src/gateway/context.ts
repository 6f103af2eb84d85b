/** Everything that the stages need and that does not belong to one exchange. */
import type { Settings } from '../config.ts'
import type { GatewayStatus, Journal, ShadowTarget, StateView } from '../fleet/protocol/worker.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import type { McpServers } from '../mcp/connection.ts'
import type { ToolSearch } from '../mcp/search/tool-search.ts'
import type { LateServers } from '../mcp/surface/late-servers.ts'
import type { McpSessions } from '../mcp/surface/sessions.ts'
import type { OfferedModels } from '../providers/catalog/offered-models.ts'
import type { PriceBook } from '../providers/prices/price-book.ts'
import type { Fetch } from '../providers/provider.ts'
import type { Tracer } from '../telemetry/tracer.ts'
import type { BatchLedger, OpenBatch } from '../usage/batches/batch-protocol.ts'
import type { TokenCounter } from '../usage/pricing/token-counter.ts'
import type { Rates } from '../usage/rate/rates.ts'
import type { UsageLimits } from '../usage/usage-limits.ts'
import type { JwtCallers } from '../workloads/jwt-callers.ts'
import type { Meter } from './accounting/metrics.ts'
import type { MemoryBudget } from './admission/memory-budget.ts'
import type { AnswerCache } from './cache/answer-cache.ts'
import type { Exchange } from './exchange.ts'
import type { SiblingWorkers } from './mcp/sibling-workers.ts'
import type { IntakeLimits } from './telemetry-intake/intake-limits.ts'
import type { Circuits } from './upstream/circuit.ts'
import type { Targets } from './upstream/targets/targets.ts'

export interface Gateway {
  readonly worker: {
    readonly journal: Journal
    readonly view: StateView
    readonly status: GatewayStatus
    readonly usageLimits: UsageLimits
    readonly rates: Rates
    readonly batches: BatchLedger
  }
  readonly prices: PriceBook
  readonly tokenCounter: TokenCounter
  readonly settings: Settings
  readonly fetch: Fetch
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly meter: Meter
  readonly tracer: Tracer
  readonly running: InFlight
  readonly memory: MemoryBudget
  /** The gateway is draining: it refuses new requests and finishes running ones. */
  draining: boolean
  readonly circuits: Circuits
  readonly cache: AnswerCache
  readonly shadows: ShadowRunner
  readonly targets: Targets
  readonly offeredModels: OfferedModels
  readonly mcp: McpPart
  readonly jwtCallers: JwtCallers
  readonly batches: FollowedBatches
  /** The directory for files that are being read. */
  readonly spoolDirectory: string
  /** Telemetry of clients on its way to the collector. */
  readonly intake: { readonly limits: IntakeLimits; waiting: number }
}

/** Sends requests a second time (gateway/shadow/README.md). */
export interface ShadowRunner {
  /** Prepares it, if this request is one of the share. It is sent when the outcome of the exchange is known. */
  prepare(exchange: Exchange, gateway: Gateway, shadow: ShadowTarget): void
}

/** The batches that this gateway follows to their end. */
export interface FollowedBatches {
  /** Begins to ask the control plane. Without it only what callers ask about is settled. */
  start(): void
  /** A batch was made. */
  made(): void
  /** A caller's request showed a batch, with this status; null if it showed only that there is output. */
  seen(batch: OpenBatch, status: unknown): void
  stop(): void
}

export interface InFlight extends Iterable<Exchange> {
  readonly size: number
  add(exchange: Exchange): void
  remove(exchange: Exchange): void
  /**
   * Makes a drain wait for a promise that is not, or no longer, an exchange. `cut` ends it when the drain timeout is
   * over.
   */
  waitFor(ended: Promise<unknown>, cut?: () => void): void
  /** Ends the running exchanges of these tokens: callers get an error, and provider calls are cancelled. */
  cutTokens(tokenHashes: readonly string[], organizationId: string): void
  /** Waits until nothing runs or `milliseconds` have passed, then cuts the rest and waits for their outcomes. */
  drain(milliseconds: number): Promise<void>
}

export interface McpPart {
  readonly servers: McpServers
  readonly sessions: McpSessions
  readonly search: ToolSearch
  readonly late: LateServers
  readonly siblings: SiblingWorkers
}
