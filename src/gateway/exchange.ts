/**
 * One governed request on its way through the gateway, and what the stages need. Each stage takes the exchange and
 * makes it richer, or throws a Failure; `stages.ts` is the order.
 */
import type { Dialect, RequestFacts, Usage } from '../dialects/dialect.ts'
import type { Provider } from '../providers/provider.ts'
import type { GovernedToken } from '../tokens/governed.ts'

/** A model as the request asked for it, and who will answer. */
export interface ResolvedModel {
  /** The id the caller used. */
  id: string
  /** The name the provider knows it by. */
  upstreamModel: string
  provider: Provider
}

/** One call to a provider, as the attempt event tells it. */
export interface Attempt {
  provider: string
  model: string
  startedAt: number
  /** Milliseconds until the headers came, null where they did not. */
  firstByteMs: number | null
  status: number | null
  reason: string
}

export interface Exchange {
  /** The gateway's own id: usage and events are keyed by it; x-request-id is the caller's and may repeat. */
  readonly id: string
  readonly requestId: string
  readonly dialect: Dialect
  readonly startedAt: number
  readonly startedMonotonic: number
  readonly request: Request
  /** One for each exchange, aborted by the caller's leaving, a deadline or an emergency; always passed upstream. */
  readonly abort: AbortController
  token: GovernedToken | null
  body: Uint8Array | null
  facts: RequestFacts | null
  model: ResolvedModel | null
  /** Whether the open record stands in the outbox: from then on there must be exactly one outcome. */
  opened: boolean
  readonly attempts: Attempt[]
  usage: Usage | null
  firstTokenMs: number | null
}
