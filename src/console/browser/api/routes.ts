/**
 * The API's routes as the console uses them: what each takes and answers, by the types of the server's own schemas. The
 * types are all that is taken from there; the page carries no validation, because the API has its own.
 * Longer than most: each route that the console calls stands here.
 */

import type { z } from 'zod'
import type { FiringRecord } from '../../../alerts/firing-record.ts'
import type { RecordKindName } from '../../../api/together/record-search-routes.ts'
import type { escalationSchema } from '../../../escalations/escalation.ts'
import type { Event, Verdict } from '../../../events/event.ts'
import type { EventType } from '../../../events/event-types.ts'
import type { MentionedName } from '../../../events/query/mentioned-names.ts'
import type { UsageReport } from '../../../events/report/report-route.ts'
import type { Recent } from '../../../events/rollups/recent.ts'
import type { SummaryReply, TotalsReply } from '../../../events/rollups/series-route.ts'
import type { SessionRecord as AgentSession } from '../../../events/sessions/read-sessions.ts'
import type { gatewayWorkerSchema } from '../../../fleet/coordinator/routes/workers.ts'
import type { waitingServerSchema } from '../../../mcp/offers/waiting-offers.ts'
import type { ConnectionRecord } from '../../../mcp/personal/connection-record.ts'
import type { ReviewedToken } from '../../../members/access-review/access-review-routes.ts'
import type { SignInWays } from '../../../members/identity-providers/provider-sign-in-routes.ts'
import type { User } from '../../../members/people/user-resource.ts'
import type { ProgramDecision, ProgramPreview } from '../../../members/programs/program-routes.ts'
import type { FoundByDoctor } from '../../../operation/findings-routes.ts'
import type { activityReply } from '../../../policies/activity/activity-reply.ts'
import type { CreatePolicyBody, UpdatePolicyBody } from '../../../policies/policy-body.ts'
import type { PolicyRecord } from '../../../policies/policy-record.ts'
import type { findingSchema, replayReply, testReply } from '../../../policies/trials/trial-replies.ts'
import type { shownPriceSchema } from '../../../providers/prices/price-record.ts'
import type { failedTestSchema } from '../../../providers/trial/last-tests.ts'
import type { Alert } from '../../../tokens/limits/alerts.ts'
import type { TokenRecord } from '../../../tokens/record.ts'
import type { cloneTokenBody, createTokenBody, updateTokenBody } from '../../../tokens/token-body.ts'
import type { budgetResource } from '../../../usage/api/budget-resource.ts'
import type { TokenLimits } from '../../../usage/api/token-limits-route.ts'
import type { BudgetValues } from '../../../usage/attribution/budget-values-route.ts'
import type { BudgetUsage } from '../../../usage/reports/budget-usage-route.ts'
import type { CostReport } from '../../../usage/reports/cost-routes.ts'
import type { ReconciliationReport } from '../../../usage/reports/reconciliation-route.ts'
import type { TokenModels } from '../../../usage/reports/token-models-route.ts'
import type { Caller, Session } from './caller.ts'
import { request } from './request.ts'

export type {
  AgentSession,
  Alert,
  BudgetUsage,
  BudgetValues,
  ConnectionRecord as Connection,
  CostReport,
  CreatePolicyBody,
  Event,
  EventType,
  FoundByDoctor,
  MentionedName,
  PolicyRecord,
  ProgramPreview,
  Recent,
  ReconciliationReport,
  ReviewedToken,
  SignInWays,
  TokenLimits,
  TokenModels,
  TokenRecord,
  UsageReport,
  User,
  Verdict,
}
export type Escalation = z.infer<typeof escalationSchema>
export type Firing = FiringRecord
export type { RecordKindName }
export type Worker = z.infer<typeof gatewayWorkerSchema>
export type WaitingServer = z.infer<typeof waitingServerSchema>
/** A provider whose last connection test failed, and that has answered no request since. */
export type FailedTest = z.infer<typeof failedTestSchema>
export interface ModelPrice {
  price: z.infer<typeof shownPriceSchema> | null
}

interface SignedIn {
  user: User
  csrf_token: string
}

/** How far a change has reached when its answer comes (fleet/README.md). */
export interface Propagation {
  connected: number
  acknowledged: number
  unreachable: { gateway_id: string; instance_id: string; until: string }[]
  effective_by: string
}

type Page<Plural extends string, Item> = Record<Plural, Item[]> & { next_cursor: string | null }
type Paged = { limit?: number; cursor?: string | null }
type Id = { id: string }
type Made = TokenRecord & { token_value: string }
type Changed = TokenRecord & { propagation: Propagation }

export type Budget = z.infer<typeof budgetResource.record>

export interface Team {
  id: string
  name: string
  created_at: string
  version: number
}

export type Finding = z.infer<typeof findingSchema>
export type Trial = z.infer<typeof testReply>
export type Replay = z.infer<typeof replayReply>
export type PolicyActivity = z.infer<typeof activityReply>['policies'][number]

export interface TrialBody {
  policies?: unknown[]
  policy_ids?: string[]
  request: unknown
  response?: unknown
  family?: string
}

export type SeriesBy = 'verdict' | 'model' | 'team' | 'gateway' | 'token' | 'reason' | `dimension:${string}`

interface Quantiles {
  p50: number
  p95: number
  p99: number
}

interface Measures {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  latency_ms: Quantiles | null
  first_token_ms: Quantiles | null
}

export type SeriesPoint = Measures & { at: string }

/** What a sum is of; `rest` where it is of all keys that are not shown. */
export interface SeriesKey {
  key: string | null
  rest: boolean
}

export interface Series {
  since: string
  until: string
  step: 'minute' | 'hour' | 'day'
  by: SeriesBy | null
  series: (SeriesKey & { points: SeriesPoint[] })[]
  totals: (SeriesKey & Measures & { name: string | null })[]
}

/** What a time came to, all of it of the same moment. */
export type Summary = SummaryReply
/** The first few keys of such a time. */
export type Totals = TotalsReply

/** What people may let applications do. */
export interface DelegableScope {
  scope: string
  sentence: string
  active: boolean
}

/** What an authorization request leads to: a question, a page that says no, or a redirect that the API built. */
export interface ConsentQuestion {
  error_page?: undefined
  redirect_to?: undefined
  client: {
    client_id: string
    client_name: string
    created_by: { name: string } | null
    origin: 'administrator' | 'document' | 'registration'
  }
  redirect_host: string
  scopes: { scope: string; sentence: string; held: boolean }[]
  resources: string[]
}
export type DeviceQuestion = Pick<ConsentQuestion, 'client' | 'scopes'> & { user_code: string; asked_at: string }
export type ConsentAnswer =
  | ConsentQuestion
  | { error_page: { error: string; message: string }; redirect_to?: undefined }
  | { error_page?: undefined; redirect_to: string }

interface BeginSignIn {
  identity_provider_id: string
  return_to: string
}

/** `METHOD /path` → what it takes and what it answers. */
interface Routes {
  'GET /v1/auth/session': { reply: Caller }
  'GET /v1/auth/sessions': { reply: { sessions: Session[] } }
  'DELETE /v1/auth/sessions/{id}': { params: Id; reply: Session }
  'POST /v1/auth/login': { body: { email: string; password: string; code?: string }; reply: SignedIn }
  'POST /v1/auth/setup': { body: { secret: string; email: string; name: string; password: string }; reply: SignedIn }
  'POST /v1/users/{id}/invitation': { params: Id; reply: { invitation_url: string; expires_at: string } }
  'POST /v1/auth/invitation/preview': { body: { secret: string }; reply: { email: string; name: string } }
  'POST /v1/auth/invitation/accept': { body: { secret: string; password: string; code?: string }; reply: SignedIn }
  'POST /v1/auth/logout': { reply: { signed_out: true; redirect_to: string | null } }
  'GET /v1/auth/identity-providers': { reply: SignInWays }
  'POST /v1/auth/identity-providers/begin': { body: BeginSignIn; reply: { redirect_to: string } }
  'POST /v1/auth/identity-providers/link': {
    body: BeginSignIn & { current_password: string }
    reply: { redirect_to: string }
  }
  'POST /v1/auth/second-factor/begin': {
    body: { current_password: string }
    reply: { secret: string; otpauth_uri: string }
  }
  'POST /v1/auth/second-factor/confirm': { body: { code: string }; reply: User }
  'POST /v1/auth/second-factor/remove': { body: { current_password: string; code: string }; reply: User }
  'POST /v1/auth/password': { body: { current_password: string; new_password: string }; reply: User }
  'POST /v1/auth/programs/preview': { body: Record<string, string>; reply: ProgramPreview }
  'POST /v1/auth/programs/decision': { body: Record<string, string | boolean | undefined>; reply: ProgramDecision }
  'POST /v1/oauth/authorize/preview': { body: Record<string, string | string[]>; reply: ConsentAnswer }
  'POST /v1/oauth/device/preview': { body: { user_code: string }; reply: DeviceQuestion }
  'POST /v1/oauth/device/decision': {
    body: { user_code: string; approve: boolean; scopes: string[]; user_id: string | undefined; client_name: string }
    reply: { approved: boolean }
  }
  'POST /v1/oauth/authorize/decision': {
    body: Record<string, string | string[] | boolean | undefined>
    reply: ConsentAnswer
  }
  'GET /v1/oauth/scopes': { reply: { scopes: DelegableScope[] } }
  'GET /v1/connections': { reply: { connections: ConnectionRecord[] } }
  'POST /v1/connections/{id}/begin': { params: Id; body: { scope?: string }; reply: { redirect_to: string } }
  'DELETE /v1/connections/{id}': { params: Id; reply: ConnectionRecord }
  'GET /v1/tokens': {
    query: Paged & Record<string, string | number | null | undefined>
    reply: Page<'tokens', TokenRecord>
  }
  'GET /v1/budgets': { query: Paged; reply: Page<'budgets', Budget> }
  'GET /v1/alert-firings': { query: Paged & { state: 'open' }; reply: Page<'alert_firings', Firing> }
  'GET /v1/gateway-workers': { query: Paged; reply: Page<'workers', Worker> }
  'GET /v1/budgets/{id}': { params: Id; reply: Budget }
  'GET /v1/budgets/{id}/usage': { params: Id; reply: BudgetUsage }
  'GET /v1/budgets/{id}/values': {
    params: Id
    query: Paged & { value?: string | null }
    reply: BudgetValues
  }
  'GET /v1/usage/report': {
    query: { since: string; by: string } & Record<string, string | null | undefined>
    reply: UsageReport
  }
  'GET /v1/findings': { reply: { examined_at: string | null; findings: FoundByDoctor[] } }
  'GET /v1/tokens/alerts': { query: Paged; reply: Page<'alerts', Alert> }
  'GET /v1/tokens/{id}': { params: Id; reply: TokenRecord }
  'GET /v1/tokens/{id}/limits': { params: Id; reply: TokenLimits }
  'GET /v1/catalog/failed-provider-tests': { reply: { failed_tests: FailedTest[] } }
  'GET /v1/catalog/waiting-mcp-offers': { reply: { mcp_servers: WaitingServer[] } }
  'GET /v1/catalog/models/{id}/price': { params: Id; reply: ModelPrice }
  'GET /v1/tokens/{id}/models': { params: Id; query: { since: string; until: string | null }; reply: TokenModels }
  'POST /v1/tokens': { body: z.input<typeof createTokenBody>; reply: Made }
  'PATCH /v1/tokens/{id}': { params: Id; body: z.input<typeof updateTokenBody>; reply: Changed }
  'DELETE /v1/tokens/{id}': { params: Id; reply: Changed }
  'POST /v1/tokens/{id}/rotate': {
    params: Id
    body: { grace_period_seconds: number }
    reply: Made & { propagation: Propagation }
  }
  'POST /v1/tokens/{id}/clone': { params: Id; body: z.input<typeof cloneTokenBody>; reply: Made }
  'POST /v1/tokens/{id}/emergency-revoke': {
    params: Id
    body: { explanation: string; revoke_active_sessions: boolean }
    reply: Changed & { proof_event_id: string }
  }
  'GET /v1/events': {
    query: Paged & { since: string } & Record<string, string | number | null | undefined>
    reply: Page<'events', Event> & { follow: string; names?: MentionedName[] }
  }
  'GET /v1/events/sessions': {
    query: Paged & { since: string } & Record<string, string | number | null | undefined>
    reply: Page<'sessions', AgentSession>
  }
  'GET /v1/events/series': {
    query: { since: string } & Record<string, string | number | null | undefined>
    reply: Series
  }
  'GET /v1/events/summary': {
    query: { since: string; until: string | null }
    reply: Summary
  }
  'GET /v1/events/summary/tokens': { query: { since: string; until: string }; reply: Totals }
  'GET /v1/events/recent': { reply: Recent }
  'GET /v1/escalations': {
    query: Paged & { status?: string | null; since?: string }
    reply: Page<'escalations', Escalation>
  }
  'GET /v1/escalations/{id}': { params: Id; reply: Escalation }
  'POST /v1/escalations/{id}/claim': { params: Id; reply: Escalation }
  'POST /v1/escalations/{id}/unclaim': { params: Id; reply: Escalation }
  'POST /v1/escalations/{id}/resolve': {
    params: Id
    body: { resolution: 'allow' | 'block'; note?: string; grant_once_seconds?: number; undo_seconds?: number }
    reply: Escalation
  }
  'POST /v1/escalations/{id}/undo': { params: Id; reply: Escalation }
  'GET /v1/records/{id}': {
    params: Id
    reply: { records: { kind: RecordKindName; id: string; name: string | null }[] }
  }
  'GET /v1/policies': { query: Paged; reply: Page<'policies', PolicyRecord> }
  'GET /v1/policies/{id}': { params: Id; reply: PolicyRecord }
  'POST /v1/policies': { body: unknown; reply: PolicyRecord }
  'PATCH /v1/policies/{id}': { params: Id; body: UpdatePolicyBody; reply: PolicyRecord }
  'DELETE /v1/policies/{id}': { params: Id; reply: PolicyRecord }
  'PUT /v1/policies/order': { body: { policy_ids: string[] }; reply: { policy_ids: string[] } }
  'POST /v1/policies/test': { body: TrialBody; reply: Trial }
  'POST /v1/policies/replay': { body: { since: string; policy: unknown }; reply: Replay }
  'GET /v1/policies/activity': {
    query: { since: string; until?: string | null; policy_id?: string }
    reply: z.infer<typeof activityReply>
  }
  'GET /v1/access-review': {
    query: Paged & Record<string, string | number | null | undefined>
    reply: Page<'tokens', ReviewedToken>
  }
  'POST /v1/access-review/revoke': {
    body: { token_ids: readonly string[] }
    reply: { tokens: { token_id: string }[]; propagation: Propagation | null }
  }
  'GET /v1/users': { query: Paged; reply: Page<'users', User> }
  'GET /v1/teams': { query: Paged; reply: Page<'teams', Team> }
  'GET /v1/teams/{id}': { params: Id; reply: Team }
  'GET /v1/teams/{id}/members': { params: Id; query: Paged; reply: Page<'members', User> }
}

type Name = keyof Routes
type Given<Route> = Omit<Route, 'reply'> & { signal?: AbortSignal; ifMatch?: number }

/** Calls a route: `api('GET /v1/tokens/{id}', { params: { id } })`. Throws `Refusal`. */
export function api<Route extends Name>(name: Route, given: Given<Routes[Route]>): Promise<Routes[Route]['reply']> {
  const [method = '', path = ''] = name.split(' ')
  const { params, query, body, signal, ifMatch }: AnyGiven = given
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, part: string) => encodeURIComponent(params?.[part] ?? ''))
  return request(method, filled, {
    query,
    body: body ?? (method === 'POST' ? {} : undefined),
    signal,
    ...(ifMatch === undefined ? {} : { headers: { 'if-match': `"${ifMatch}"` } }),
  })
}

interface AnyGiven {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string | number | null | undefined>>
  body?: unknown
  signal?: AbortSignal
  ifMatch?: number
}
