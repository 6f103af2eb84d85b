import type { Verdict } from '../events/event.ts'
import { Failure } from '../failure.ts'
import type { CatalogModel } from '../fleet/protocol/worker.ts'
import type { Dialect, RequestFacts, StreamReader, Usage } from '../languages/dialect.ts'
import type { LanguageName, NeutralRequest } from '../languages/neutral.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Placed } from '../lib/short-lived.ts'
import type { PolicyChain, PolicyResult } from '../policies/chain.ts'
import type { PolicyContext } from '../policies/conditions/context.ts'
import type { Placeholders } from '../policies/redaction.ts'
import type { ModelTerms } from '../providers/prices/price-book.ts'
import type { Provider, ProviderKind } from '../providers/provider.ts'
import type { ExchangeTrace } from '../telemetry/tracer.ts'
import type { GovernedToken } from '../tokens/governed-token.ts'
import type { Reservation } from '../usage/allowance.ts'
import type { RateTicket } from '../usage/rate/rate-ticket.ts'
import type { TracedAnswer } from './accounting/traced-answer.ts'
import type { AnswerMemory, BodyMemory, MemoryBudget } from './admission/memory-budget.ts'
import type { McpRequest } from './mcp/mcp-request.ts'
import type { EscalationNotice } from './policy/escalation-notice.ts'
import type { BeginInspection, StreamInspection } from './policy/inspected-stream.ts'
import type { BodyMembers } from './request/edit-body.ts'

/** A model that was asked for, and who will answer. Requests for the same record share one. */
export interface ResolvedModel {
  /** The id of its record; of a model that no record lists, the name by which its provider's kind knows it. */
  readonly id: string
  /** Other names of the same model: a policy that denies one of them denies it. */
  readonly aliases: readonly string[]
  /** The name the provider knows it by. */
  readonly upstreamModel: string
  readonly provider: Provider
  /** The catalog's record; null for a model that the catalog does not list. */
  readonly listed: CatalogModel | null
  readonly kind: ProviderKind
}

/** One call to a provider, as the attempt event tells it. */
export interface Attempt {
  readonly eventId: string
  /** The call's own span; null where the exchange is not recorded as a trace. */
  readonly spanId: string | null
  provider: string
  model: string
  startedAt: number
  startedMonotonic: number
  /** Milliseconds until the headers came, null where they did not. */
  firstByteMs: number | null
  /** Milliseconds from the call to its end, null while it runs. */
  latencyMs: number | null
  status: number | null
  reason: ReasonCode
  /** What the provider reported for a call that was not the last one; absent where it reported nothing. */
  usage?: Usage | null
}

/** What a path costs, as of the admission. */
export interface PricedPath {
  model: ResolvedModel
  terms: ModelTerms
  /** What a request costs at most, in nano-dollars; null where no limit of money asks for it. */
  bound: PathBound | null
}

export interface PathBound {
  /** By the list price. */
  listed: number
  /** What the provider has charged beyond such bounds before, at most. */
  excess: number
}

/** Stable words of what became of an exchange, beside the codes of failures. */
export type ReasonCode =
  | 'ok'
  | 'provider.error'
  | 'provider.unreachable'
  | 'provider.timeout'
  | 'provider.interrupted'
  | 'provider.invalid_answer'
  | 'provider.answer_too_large'
  | 'client.left'
  | 'gateway.interrupted'
  | 'gateway.drained'
  | 'token.revoked'
  | (string & {})

/** Why an exchange was cut short: what the event says, and what the caller is told where it still listens. */
export interface Cut {
  reason: ReasonCode
  failure: Failure
}

/** What became of the exchange; there is one, and only the first counts. */
export interface Outcome {
  verdict: Verdict
  reason: ReasonCode
  /** The HTTP status that the caller got, null where it left before there was one. */
  status: number | null
}

export type Connection = Pick<Bun.Server<unknown>, 'timeout'>

export interface Exchange extends Placed {
  /** The gateway's own id: usage and events are keyed by it; x-request-id is the caller's and may repeat. */
  readonly id: string
  readonly requestId: string
  /** The outcome's event id, the same for what a restart would write, so that only one can ever stand. */
  readonly outcomeEventId: string
  /** The trace it belongs to: the caller's, or one that begins here; null where there is none. */
  trace: ExchangeTrace | null
  /** `POST /v1/chat/completions`, as events name it. */
  readonly route: string
  /** A bounded label for metrics: the dialect's family, or `models`. */
  readonly family: string
  readonly dialect: Dialect
  readonly startedAt: number
  readonly startedMonotonic: number
  readonly request: Request
  /** The server that holds the caller's connection; null where there is none, as in tests. */
  readonly connection: Connection | null
  /**
   * Always passed upstream, aborted by the caller's leaving, a deadline or a drain. Another try to get an answer has
   * another one, since the former call is let go of by it.
   */
  abort: AbortController
  /** SHA-256 of the secret that was shown, by which the token is looked at again. */
  tokenHash: string | null
  token: GovernedToken | null
  /** The body as it came, or as a policy rewrote it; set before the stages where a frame brought it. */
  body: Uint8Array | null
  /** The body's Content-Type, the caller's own; JSON where it sent none. */
  contentType: string
  /** Where the outermost members, or a form's fields, stand in the body's text. */
  members: BodyMembers | null
  /** The body parsed, a form as its fields; its texts are what policies read. */
  parsed: Record<string, unknown> | null
  /** Members to be written anew when the body is sent: JSON text, or null to leave the member out. */
  readonly edits: Map<string, string | null>
  /** A policy changed members, so that what is sent may be longer than what came. */
  rewritten: boolean
  sessionId: string | null
  /** What the gateway did to the request beyond its verdicts, in stable words, as `details.notes` of the event. */
  readonly notes: string[]
  facts: RequestFacts | null
  /** The request in the form that is written for providers of other languages; null where there is none. */
  neutral: NeutralRequest | null
  /** The languages of paths that are asked in another than the first that they can be; null where all are in the first. */
  furtherLanguages: Map<ResolvedModel, LanguageName> | null
  promptHash: string | null
  /** The request's text as its record keeps it; null where it keeps none. */
  promptRedacted: string | null
  /** The path that is or will be tried; the first of `paths` until one fails. */
  model: ResolvedModel | null
  /** The models that may answer, the one that was asked for first, then its fallbacks (gateway/README.md, Paths). */
  paths: readonly ResolvedModel[]
  chain: PolicyChain | null
  /** What policies read of the request; null where none looks at it. */
  policyContext: PolicyContext | null
  readonly policyResults: PolicyResult[]
  /** What was redacted in the request and is put back in the answer. */
  placeholders: Placeholders | null
  /** What waits for a person; null where nothing does. */
  escalation: EscalationNotice | null
  /** A reviewer's leave to send this once, and what is held of its account. */
  grant: { readonly id: string; readonly reservation: Reservation } | null
  /** The strongest verdict so far. */
  verdict: Verdict
  reservation: Reservation | null
  /** What it took of limits of requests and tokens a minute. */
  rates: RateTicket | null
  /** What the paths cost; empty until usage is reserved. */
  priced: readonly PricedPath[]
  /** Who pays: `user:<id>`, `team:<id>` or `organization`. */
  spendOwner: string | null
  /** To what the limit of the output was lowered, because a budget could not pay more; null where it was not. */
  maxOutputTokens: number | null
  /** Bytes of the body, which is let go when it has been sent. */
  bodyLength: number
  /** What the body, and an answer that is read whole, hold of the memory for requests; released at the end. */
  readonly memory: BodyMemory
  readonly answerMemory: AnswerMemory
  /** Whether the open record stands in the outbox: from then on there must be exactly one outcome. */
  opened: boolean
  readonly attempts: Attempt[]
  /** What is asked of an MCP server, or by one; null on all other routes. */
  readonly mcp: McpRequest | null
  /** The provider's answer: held here so that it is not collected while its body still streams. */
  upstream: Response | null
  /** Follows the answer's frames; null where it is no stream. */
  reader: StreamReader | null
  /** Set by the chain, before dispatch, where a policy of it looks at streamed answers. */
  beginInspection: BeginInspection | null
  /** What a streamed answer goes through before the caller; null where nothing looks at it. */
  inspection: StreamInspection | null
  /** post_request policies look at the answer before it is translated, and note there what its frames tell. */
  inspectedUpstream: boolean
  /** What the provider has reported, as it did. */
  usage: Usage | null
  /** Tokens, estimated, of calls that reported none, where the request is sent as several; null where it is one. */
  unreportedInput: number | null
  /** Characters of generated text that were passed on, for estimates. */
  relayedText: number
  /** Those of a stream that came after the last report. */
  textSinceUsage: number
  firstTokenMs: number | null
  /** What its span says of the answer; null where the exchange is not recorded as a trace, or there was none. */
  tracedAnswer: TracedAnswer | null
  /** Set once, by `cut`; the abort follows from it. */
  cut: Cut | null
  /** Called when the exchange is cut while nothing of it waits for the provider. */
  onCut: (() => void) | null
  /** Until when the body has to be there whole, monotonic; null while it is not waited for. `in-flight.ts` watches it. */
  bodyUntil: number | null
  /** When the provider's silence began, monotonic; null while nobody waits for it. `in-flight.ts` watches it. */
  waitingSince: number | null
  /** The answer goes on after it was handed out: its end, not its headers, ends the exchange. */
  streaming: boolean
  /** Resolves when the outcome is committed; null until there is one. */
  settled: Promise<void> | null
  /** The server's limit for idle connections is lifted from the caller's. */
  heldOpen: boolean
  /** The caller's connection is being watched. */
  watched: boolean
  /** What the last stage made. */
  answer: Response | null
}

/** The model that was asked for, by the name that filters and policies know; null before the request is read. */
export const askedModel = ({ paths, facts }: Pick<Exchange, 'paths' | 'facts'>): string | null =>
  paths[0]?.id ?? facts?.model ?? null

export interface Beginning {
  request: Request
  connection: Connection | null
  requestId: string
  route: string
  family: string
  dialect: Dialect
  /** What a frame brought; null where the request itself holds it. */
  body?: Uint8Array | null
  mcp?: McpRequest
}

/** An exchange of which nothing is known yet but that it was asked for. */
export const beginExchange = (
  beginning: Beginning,
  { clock, newId, memory }: { clock: Clock; newId: NewId; memory: MemoryBudget },
): Exchange => ({
  id: newId(),
  requestId: beginning.requestId,
  outcomeEventId: newId(),
  trace: null,
  route: beginning.route,
  family: beginning.family,
  dialect: beginning.dialect,
  startedAt: clock.now(),
  startedMonotonic: clock.monotonic(),
  request: beginning.request,
  connection: beginning.connection,
  abort: new AbortController(),
  tokenHash: null,
  token: null,
  body: beginning.body ?? null,
  contentType: beginning.request.headers.get('content-type') ?? '',
  members: null,
  parsed: null,
  edits: new Map(),
  rewritten: false,
  sessionId: null,
  notes: [],
  facts: null,
  neutral: null,
  furtherLanguages: null,
  promptHash: null,
  promptRedacted: null,
  model: null,
  paths: [],
  chain: null,
  policyContext: null,
  policyResults: [],
  placeholders: null,
  escalation: null,
  grant: null,
  verdict: 'allow',
  reservation: null,
  rates: null,
  priced: [],
  spendOwner: null,
  maxOutputTokens: null,
  bodyLength: 0,
  memory: memory.forBody(),
  answerMemory: memory.forAnswer(),
  opened: false,
  attempts: [],
  mcp: beginning.mcp ?? null,
  upstream: null,
  reader: null,
  beginInspection: null,
  inspection: null,
  inspectedUpstream: false,
  usage: null,
  unreportedInput: null,
  relayedText: 0,
  textSinceUsage: 0,
  firstTokenMs: null,
  tracedAnswer: null,
  cut: null,
  onCut: null,
  bodyUntil: null,
  waitingSince: null,
  streaming: false,
  settled: null,
  heldOpen: false,
  watched: false,
  answer: null,
  place: -1,
})

/** What an earlier stage must have set. Its absence is a mistake in the order of stages: `internal`. */
export function required<Value>(value: Value | null): Value {
  if (value === null) throw new Failure('internal', { cause: new Error('A stage ran before the one it builds on') })
  return value
}

/** Ends an exchange from outside its own course: the caller left, a deadline passed, the gateway stops. First wins. */
export function cut(exchange: Exchange, reason: ReasonCode, failure: Failure): void {
  if (exchange.cut !== null) return
  exchange.cut = { reason, failure }
  exchange.abort.abort(failure)
  exchange.onCut?.()
}
