/**
 * What is known of one governed request, from its arrival to its outcome. Longer than most: every member of an exchange
 * stands here, with what it means and when it is set.
 */
import type { CostAttribution, Verdict } from '../events/event.ts'
import { Failure, type RefusedLimit } from '../failure.ts'
import type { CatalogModel } from '../fleet/protocol/worker.ts'
import type { Dialect, RequestFacts, Usage } from '../languages/dialect.ts'
import type { LanguageName, NeutralRequest } from '../languages/neutral.ts'
import type { JsonObject } from '../languages/reading/json-value.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Placed } from '../lib/short-lived.ts'
import type { PolicyChain, PolicyResult } from '../policies/chain.ts'
import type { PolicyContext } from '../policies/conditions/context.ts'
import type { Placeholders } from '../policies/redaction.ts'
import type { ModelTerms } from '../providers/prices/price-book.ts'
import type { Provider, ProviderKind, UpstreamCall } from '../providers/provider.ts'
import type { ExchangeTrace } from '../telemetry/tracer.ts'
import type { GovernedToken } from '../tokens/governed-token.ts'
import type { Attributed } from '../usage/attribution/dimension.ts'
import type { RateTicket } from '../usage/rate/rate-ticket.ts'
import type { Reservation } from '../usage/usage-limits.ts'
import type { WorkloadCaller } from '../workloads/workload-identity.ts'
import type { AnswerMemory, BodyMemory, MemoryBudget } from './admission/memory-budget.ts'
import type { CacheUse } from './cache/cache-state.ts'
import type { McpRequest } from './mcp/mcp-request.ts'
import type { EscalationNotice } from './policy/escalation-notice.ts'
import type { BeginInspection } from './policy/inspected-stream.ts'
import { type Call, newCall } from './provider-call.ts'
import type { BodyMembers } from './request/edit-body.ts'
import type { StoredState } from './stored/stored-state.ts'
import type { TargetState } from './upstream/targets/target-state.ts'

/** A resolved model and its provider. Requests for the same record share one object. */
export interface ResolvedModel {
  /** The id of its record, or for an unlisted model the name by which the provider's kind knows it. */
  readonly id: string
  /** Other names of the same model. A policy that denies one of them denies it. */
  readonly aliases: readonly string[]
  /** The provider's name of the model. */
  readonly upstreamModel: string
  readonly provider: Provider
  /** The catalog record; null for an unlisted model. */
  readonly listed: CatalogModel | null
  readonly kind: ProviderKind
}

/** One call to a provider, as the attempt event states it. */
export interface Attempt {
  readonly eventId: string
  /** The span of the call; null when the exchange is not traced. */
  readonly spanId: string | null
  provider: string
  model: string
  startedAt: number
  startedMonotonic: number
  /** Milliseconds until the response headers; null before them. */
  firstByteMs: number | null
  /** Milliseconds from the start of the call to its end; null while it runs. */
  latencyMs: number | null
  status: number | null
  reason: ReasonCode
  /** What is measured of its target, and the number of the provider's key; absent where neither applies. */
  target?: TargetState
  key?: number
  /** Reported usage of a call that was not the last; absent when none was reported. */
  usage?: Usage | null
}

/** The price of a path at admission. */
export interface PricedPath {
  model: ResolvedModel
  terms: ModelTerms
  /** The maximum cost in nano-dollars; null when no money limit applies. */
  bound: PathBound | null
}

export interface PathBound {
  /** By the list price. */
  listed: number
  /** The most that the provider has charged beyond earlier bounds. */
  excess: number
}

/** Stable reason codes of outcomes, in addition to the codes of failures. */
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

/** Why an exchange was cut: the reason for the event and the failure for a caller that still listens. */
export interface ExchangeCut {
  reason: ReasonCode
  failure: Failure
}

/** The result of an exchange. There is exactly one; only the first counts. */
export interface Outcome {
  verdict: Verdict
  reason: ReasonCode
  /** The HTTP status that the caller got; null when it disconnected before there was one. */
  status: number | null
  /** The limit that refused it. */
  limit?: RefusedLimit | null
}

/** A request that is sent a second time when its caller's exchange has ended (gateway/shadow/README.md). */
export interface PendingShadow {
  ended(outcome: Outcome, cost: CostAttribution | undefined): void
}

/** The answer that a caller got, beside which that of a shadow is recorded. */
export interface ShadowedAnswer {
  readonly exchange_id: string
  readonly provider: string | null
  readonly model: string | null
  readonly verdict: Verdict
  readonly latency_ms: number
  readonly first_token_ms: number | null
  readonly answer_characters: number
  readonly output_tokens: number | null
  /** US dollars. */
  readonly cost: number | null
}

export type Connection = Pick<Bun.Server<unknown>, 'timeout'>

export interface Exchange extends Placed {
  /** The gateway's own id, which keys usage and events. `x-request-id` is chosen by the caller and may repeat. */
  readonly id: string
  readonly requestId: string
  /** The event id of the outcome. Recovery uses the same one, so that only one outcome can be recorded. */
  readonly outcomeEventId: string
  /** The caller's trace or a new one; null without tracing. */
  trace: ExchangeTrace | null
  /** `POST /v1/chat/completions`, as events name it. */
  readonly route: string
  /** A metric label with a bounded number of values: the family of the dialect, or `models`. */
  readonly family: string
  readonly dialect: Dialect
  readonly startedAt: number
  readonly startedMonotonic: number
  readonly request: Request
  /** The server of the caller's connection; null when there is none, as in tests. */
  readonly connection: Connection | null
  /** The call that runs or comes next. */
  call: Call
  /** SHA-256 of the presented secret, by which the token is checked again. */
  tokenHash: string | null
  /** Whom another issuer vouches for; null for the holder of a secret. */
  workload: WorkloadCaller | null
  token: GovernedToken | null
  /** The body as received, or as a policy rewrote it. A WebSocket frame sets it before the stages run. */
  body: Uint8Array | null
  /** The Content-Type of the body as the caller sent it; JSON when it sent none. */
  contentType: string
  /** The positions of the outermost members, or of the fields of a form, in the text of the body. */
  members: BodyMembers | null
  /** The parsed body, a form as its fields. Policies read its texts. */
  parsed: Record<string, unknown> | null
  /** Members to replace when the body is sent: JSON text, or null to remove the member. */
  readonly edits: Map<string, string | null>
  /** A policy changed members, so the sent body may be longer than the received one. */
  rewritten: boolean
  sessionId: string | null
  /** The known client that sent it, by the name of `connect`; null for any other. */
  client: string | null
  /** Names of the tools that the model called last, in a session; null if it called none. */
  calledTools: readonly string[] | null
  /** Stable notes of what the gateway changed in the request, recorded as `details.notes`. */
  readonly notes: string[]
  facts: RequestFacts | null
  /**
   * The neutral form of the request, from which other languages are written, with notes of what was left out of it;
   * null when no translation is needed.
   */
  neutral: { request: NeutralRequest; body: Readonly<JsonObject>; notes: readonly string[] } | null
  /** The languages of paths that are called in another language than their first; null when there are none. */
  otherLanguages: Map<ResolvedModel, LanguageName> | null
  promptHash: string | null
  /** The request text for the event; null when none is kept. */
  promptRedacted: string | null
  /** The members of its record that do not change after dispatch, as JSON; null before they are needed. */
  recordStart: string | null
  /** The path that is or will be called: the first of `paths` until one fails. */
  model: ResolvedModel | null
  /** The models that may answer: the requested one, then its fallbacks (gateway/README.md, Paths). */
  paths: readonly ResolvedModel[]
  chain: PolicyChain | null
  /** What policies read of the request; null when no policy reads it. */
  policyContext: PolicyContext | null
  readonly policyResults: PolicyResult[]
  /** Text that was redacted in the request and is restored in the answer. */
  placeholders: Placeholders | null
  /** The escalation of this exchange; null when there is none. */
  escalation: EscalationNotice | null
  /** A reviewer's grant to send this request once, with the reservation on its account. */
  grant: { readonly id: string; readonly reservation: Reservation } | null
  /** The strongest verdict so far. */
  verdict: Verdict
  reservation: Reservation | null
  /** Values of the organization's dimensions; null without any. */
  attributed: Attributed | null
  /** What it took from limits of requests and tokens a minute. */
  rates: RateTicket | null
  /** The prices of the paths; empty until usage is reserved. */
  priced: readonly PricedPath[]
  /** The owner of the spend: `user:<id>`, `team:<id>` or `organization`. */
  spendOwner: string | null
  /** The output limit that a budget imposed; null when it imposed none. */
  maxOutputTokens: number | null
  /** The length of the body in bytes; the body itself is freed after it was sent. */
  bodyLength: number
  /** The memory reserved for the body and a buffered answer; released at the end. */
  readonly memory: BodyMemory
  readonly answerMemory: AnswerMemory
  /** The open record is in the outbox. From then on there must be exactly one outcome. */
  opened: boolean
  readonly attempts: Attempt[]
  /** How it uses the answer cache; null for most. */
  cache: CacheUse | null
  /** What sends the request a second time; null for most. */
  shadow: PendingShadow | null
  /** Of a second sending: the answer that the caller got; null for every other exchange. */
  shadowed: ShadowedAnswer | null
  /** Sends its calls in place of the provider's kind: a realtime session; null elsewhere. */
  transport: ((call: UpstreamCall) => Promise<Response>) | null
  /** What it has to do with objects that the provider stores; null if nothing. */
  stored: StoredState | null
  /** The MCP request; null on all other routes. */
  readonly mcp: McpRequest | null
  /** Set by the policy chain before dispatch when a policy inspects streamed answers. */
  beginInspection: BeginInspection | null
  /** The number of characters of generated text that were passed on, for estimates. */
  relayedCharacters: number
  firstTokenMs: number | null
  /** Set once, by `cut`, which then aborts the call. */
  cut: ExchangeCut | null
  /** Called when the exchange is cut while it does not wait for the provider. */
  onCut: (() => void) | null
  /** The monotonic deadline of the body; null when no body is awaited. `in-flight.ts` checks it. */
  bodyDeadline: number | null
  /** The answer streams: its end, not its headers, ends the exchange. */
  streaming: boolean
  /** Resolves when the outcome is committed; null before there is one. */
  outcomeCommitted: Promise<void> | null
  /** The server's idle timeout is lifted for the caller's connection. */
  idleTimeoutLifted: boolean
  /** Its number among all running exchanges; kept by the set of them. */
  slot: number
  /** The caller's connection is watched for a disconnect. */
  watched: boolean
  /** The answer that the last stage made. */
  answer: Response | null
}

/** The requested model by the name that filters and policies know; null before the request is read. */
export const requestedModel = ({ paths, facts }: Pick<Exchange, 'paths' | 'facts'>): string | null =>
  (paths[0]?.id ?? facts?.model) || null

/**
 * Keeps the paths that pass a check. One that fails it with a `Failure` is left out while another target of the
 * requested model is left; otherwise the failure of the first is thrown.
 */
export function keepPaths(exchange: Exchange, check: (path: ResolvedModel) => void): void {
  const { paths } = exchange
  const requested = paths[0]?.id
  let failure: Failure | null = null
  const kept = paths.filter((path) => {
    try {
      check(path)
      return true
    } catch (thrown) {
      // A defect is thrown; what a path cannot serve leaves it out.
      if (!(thrown instanceof Failure)) throw thrown
      failure ??= thrown
      return false
    }
  })
  if (kept[0]?.id !== requested && failure !== null) throw failure
  if (kept.length === paths.length) return
  exchange.paths = kept
  exchange.model = kept[0] ?? exchange.model
}

export interface ExchangeStart {
  request: Request
  connection: Connection | null
  requestId: string
  route: string
  family: string
  dialect: Dialect
  /** The body of a WebSocket frame; null when the request itself holds the body. */
  body?: Uint8Array | null
  mcp?: McpRequest
}

/** Creates an exchange before anything of it was read. */
export const beginExchange = (
  beginning: ExchangeStart,
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
  call: newCall(),
  tokenHash: null,
  workload: null,
  token: null,
  body: beginning.body ?? null,
  contentType: beginning.request.headers.get('content-type') ?? '',
  members: null,
  parsed: null,
  edits: new Map(),
  rewritten: false,
  sessionId: null,
  client: null,
  calledTools: null,
  notes: [],
  facts: null,
  neutral: null,
  otherLanguages: null,
  promptHash: null,
  promptRedacted: null,
  recordStart: null,
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
  attributed: null,
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
  cache: null,
  shadow: null,
  shadowed: null,
  stored: null,
  transport: null,
  beginInspection: null,
  relayedCharacters: 0,
  firstTokenMs: null,
  cut: null,
  onCut: null,
  bodyDeadline: null,
  streaming: false,
  outcomeCommitted: null,
  idleTimeoutLifted: false,
  watched: false,
  answer: null,
  place: -1,
  slot: 0,
})

/** Returns a value that an earlier stage must have set. A missing one is a wrong order of stages: `internal`. */
export function required<Value>(value: Value | null): Value {
  if (value === null) throw new Failure('internal', { cause: new Error('A stage ran before the one it builds on') })
  return value
}

/** Ends an exchange from outside: client disconnect, deadline or drain. Only the first call counts. */
export function cutExchange(exchange: Exchange, reason: ReasonCode, failure: Failure): void {
  if (exchange.cut !== null) return
  exchange.cut = { reason, failure }
  exchange.call.abort.abort(failure)
  exchange.onCut?.()
}
