/**
 * Everything that can be refused or go wrong, in one table: the stable code, the HTTP status, the error type and what
 * to do about it (handbook/reference/errors.md; handbook/reference/http.md). Throw a Failure anywhere; one place for
 * each surface (the control plane, each gateway dialect, the command line) turns it into output. Codes are API,
 * messages are not. Longer than most, because it is one table.
 */

interface Row {
  status: number
  type: ErrorType
  message: string
}

export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'access_denied'
  | 'cost_budget_exceeded'
  | 'payment_required'
  | 'rate_limit_exceeded'
  | 'insufficient_quota'
  | 'service_unavailable'
  | 'server_error'

const row = (status: number, type: ErrorType, message: string): Row => ({ status, type, message })

/** The message of `invalid_json` for what is JSON and not an object. */
export const notAnObject = 'The request body is JSON, but not an object: send a JSON object'

/** The message of `bad_request` for a request that names its host more than once (RFC 9112 section 3.2). */
export const severalHosts = 'The request names more than one host: send one Host header'

export const failures = {
  // The request itself
  invalid_json: row(400, 'invalid_request_error', 'The request body is not valid JSON: send a JSON object in UTF-8'),
  json_too_deep: row(400, 'invalid_request_error', 'The JSON body is nested more than 64 levels deep'),
  invalid_form: row(400, 'invalid_request_error', 'The request body is not a valid form: send multipart/form-data'),
  invalid_encoding: row(400, 'invalid_request_error', 'The body is not encoded as its Content-Encoding says'),
  invalid_request_id: row(400, 'invalid_request_error', 'x-request-id must match [A-Za-z0-9._:-]{1,128}'),
  bad_request: row(400, 'invalid_request_error', 'The request is malformed: see /v1/openapi.json'),
  not_found: row(404, 'invalid_request_error', 'There is nothing at this path: see /v1/openapi.json'),
  method_not_allowed: row(405, 'invalid_request_error', 'This path does not accept this method: see /v1/openapi.json'),
  gone: row(410, 'invalid_request_error', 'This route is retired'),
  conflict: row(409, 'invalid_request_error', 'The change conflicts with the present state: read it again and retry'),
  consent_outdated: row(
    409,
    'invalid_request_error',
    'The request has changed since it was shown: open the page again',
  ),
  version_mismatch: row(412, 'invalid_request_error', 'The record has changed since it was read: read it and retry'),
  request_timeout: row(408, 'invalid_request_error', 'The request body did not arrive in time'),
  request_too_large: row(413, 'invalid_request_error', 'The request body is larger than the limit'),
  upgrade_required: row(426, 'invalid_request_error', 'This path needs a WebSocket: send an upgrade request'),
  unsupported_media_type: row(415, 'invalid_request_error', 'Send the body as application/json'),
  invalid_parameter: row(422, 'invalid_request_error', 'A field is missing or has a wrong value'),
  unknown_parameter: row(422, 'invalid_request_error', 'The request has a field that this route does not know'),
  export_elsewhere: row(409, 'invalid_request_error', 'Another control plane has the file of this export: ask there'),
  export_too_large: row(
    409,
    'invalid_request_error',
    'The export files use all their space: wait until some expire, or raise export_limit_bytes',
  ),
  export_overtaken: row(
    409,
    'invalid_request_error',
    'Retention removed events before the export could read them: export again from what is left',
  ),
  invalid_cursor: row(422, 'invalid_request_error', 'The cursor belongs to another query: start again without it'),
  previous_response_not_found: row(
    400,
    'invalid_request_error',
    'The previous response is not known here: send the whole input without previous_response_id',
  ),
  session_id_mismatch: row(422, 'invalid_request_error', 'session_id and x-session-id differ: send one of them'),
  idempotency_key_reused: row(422, 'invalid_request_error', 'This Idempotency-Key was used with another body'),
  idempotency_key_used: row(409, 'invalid_request_error', 'This Idempotency-Key already made a secret, shown once'),
  idempotency_in_flight: row(409, 'invalid_request_error', 'A request with this Idempotency-Key is still running'),

  // Who is asking
  missing_api_key: row(401, 'authentication_error', 'Send Authorization: Bearer <API token>'),
  invalid_api_token: row(401, 'authentication_error', 'The API token is not valid'),
  'tokens.expired': row(401, 'authentication_error', 'The API token has expired'),
  invalid_credentials: row(401, 'authentication_error', 'The e-mail address or the password is wrong'),
  second_factor_required: row(
    401,
    'authentication_error',
    'This account has a second factor: send the code of the authenticator app as well',
  ),
  invalid_second_factor: row(
    422,
    'invalid_request_error',
    'The code of the authenticator app is wrong, or was used already: wait for the next one',
  ),
  sign_in_throttled: row(429, 'rate_limit_exceeded', 'Too many attempts to sign in: wait and try again'),
  csrf_refused: row(403, 'access_denied', "Send the session's x-csrf-token, from a page of the console's own origin"),
  permission_denied: row(403, 'access_denied', 'The token lacks a permission that this call needs'),
  insufficient_scope: row(403, 'access_denied', 'The access token lacks the scope that this call needs'),
  access_denied: row(403, 'access_denied', 'The token may not do this'),
  'tokens.gateway_not_allowed': row(403, 'access_denied', 'The token is bound to another gateway'),
  'tokens.provider_not_allowed': row(403, 'access_denied', 'The token may not use the provider of this model'),
  'tokens.model_not_allowed': row(403, 'access_denied', 'The token may not use this model'),
  'tokens.purpose_not_allowed': row(403, 'access_denied', 'A token of this purpose may not call this route'),

  // People and programs
  invalid_code: row(422, 'invalid_request_error', 'The code is unknown, used, expired or not for this program'),
  invalid_setup_link: row(
    422,
    'invalid_request_error',
    'The setup link is unknown, used or expired: gatehouse auth setup-link makes another',
  ),

  // Tokens on the control plane
  token_scope_widened: row(422, 'invalid_request_error', 'A token can only be narrowed: make a new one instead'),
  token_not_active: row(409, 'invalid_request_error', 'The token is not active'),
  token_already_rotated: row(409, 'invalid_request_error', 'The token has already been rotated'),

  // Policies (policies/README.md)
  content_policy_violation: row(400, 'invalid_request_error', 'A policy blocked this'),
  policy_denied: row(403, 'access_denied', 'A policy denied this request'),
  policy_rate_limited: row(429, 'rate_limit_exceeded', 'A policy limits the rate of these requests: retry later'),
  'policy.incompatible_active_chain': row(
    400,
    'invalid_request_error',
    'An active policy has a stage that this route does not support: send the request to another route, or narrow the policy to families that have the stage',
  ),
  'policy.escalated': row(403, 'access_denied', 'This request waits for the decision of a person'),
  pattern_unbounded: row(422, 'invalid_request_error', 'A pattern for streams must have a bounded length'),

  // Usage (usage/README.md)
  'tokens.budget_exhausted': row(402, 'cost_budget_exceeded', 'The budget of the token is used up'),
  'tokens.request_limit_exhausted': row(403, 'access_denied', 'The requests of the token are used up'),
  'tokens.model_unpriced': row(
    403,
    'access_denied',
    "The model has no price, so the token's budget cannot be enforced: set a price for the model",
  ),
  'tokens.cost_unbounded': row(
    403,
    'access_denied',
    "The cost of this request has no upper bound, so the token's budget cannot be enforced",
  ),
  usage_authorization_budget_exceeded: row(402, 'payment_required', 'A budget cannot pay for this request'),
  usage_authorization_request_limit_exceeded: row(429, 'insufficient_quota', 'The token has used all its requests'),
  usage_authorization_rate_limited: row(
    503,
    'service_unavailable',
    'An access policy limits requests or tokens a minute',
  ),
  consumer_group_rate_limit_exceeded: row(
    429,
    'rate_limit_exceeded',
    'A consumer group limits requests or tokens a minute',
  ),
  request_exceeds_rate_limit: row(
    400,
    'invalid_request_error',
    'The request takes more tokens than a limit allows in a minute',
  ),
  usage_authorization_too_many_values: row(
    402,
    'payment_required',
    'A limit for each value of a dimension has as many values as the dimension allows',
  ),
  attribution_refused: row(
    422,
    'invalid_request_error',
    'A value that spend is attributed to is missing or not allowed',
  ),
  usage_authority_unavailable: row(503, 'service_unavailable', 'The usage ledger does not answer: retry shortly'),

  // The gateway
  model_family_unsupported: row(
    400,
    'invalid_request_error',
    'This model is not served on this route: use a route of its family',
  ),
  translation_unsupported: row(
    400,
    'invalid_request_error',
    "The model's provider has no equivalent of this field: leave it out, or use another model",
  ),
  realtime_secret_refused: row(
    501,
    'invalid_request_error',
    'A client secret or a call would connect an application to the provider past this gateway: open a WebSocket to /v1/realtime with a token of the gateway',
  ),
  realtime_session_ended: row(503, 'service_unavailable', 'The realtime session has ended: open another one'),
  realtime_sessions_exhausted: row(
    503,
    'service_unavailable',
    'The gateway serves as many realtime sessions as realtime_sessions allows: try again later',
  ),
  realtime_rate_exceeded: row(
    429,
    'rate_limit_exceeded',
    'The client sends more events a second than the gateway allows',
  ),
  transcription_required: row(
    400,
    'invalid_request_error',
    'A policy must read what is said: set audio.input.transcription with session.update before sending sound',
  ),
  token_count_unsupported: row(
    501,
    'invalid_request_error',
    'The provider of this model counts no tokens, and the gateway does not estimate: use a model whose provider does',
  ),
  stored_object_not_found: row(
    404,
    'invalid_request_error',
    'No such response, conversation, file or batch is stored for the owner of this token',
  ),
  stored_responses_unsupported: row(
    501,
    'invalid_request_error',
    'The provider stores no responses: leave background, previous_response_id and conversation out, or use a model whose provider does',
  ),
  batches_unsupported: row(
    501,
    'invalid_request_error',
    "The model's provider takes no batches of this family: send the requests one by one, or name another model",
  ),
  batch_file_outdated: row(
    409,
    'invalid_request_error',
    'The policies or the price of the model have changed since this file was uploaded: upload it again',
  ),
  uploads_full: row(503, 'service_unavailable', 'This gateway reads as many files as it may at once: retry shortly'),
  telemetry_not_configured: row(
    501,
    'invalid_request_error',
    'This gateway has no collector to send telemetry to: its operator sets SERVICE_OTLP_ENDPOINT, or takes the exporter out of your settings',
  ),
  telemetry_refused: row(400, 'invalid_request_error', 'The collector refused this telemetry'),
  telemetry_limited: row(429, 'rate_limit_exceeded', 'This token sends too much telemetry: retry later'),
  telemetry_unavailable: row(503, 'service_unavailable', 'The collector did not take the telemetry: retry later'),
  background_full: row(503, 'service_unavailable', 'This gateway runs as many responses in the background as it may'),
  model_not_found: row(404, 'invalid_request_error', 'No such model: GET /v1/models lists what this token may use'),
  'mcp.unknown_name': row(
    404,
    'invalid_request_error',
    'No such tool, prompt or resource: list what the server offers',
  ),
  'mcp.unknown_tool': row(
    404,
    'invalid_request_error',
    'The MCP server has no such tool, or the tool is not approved yet: list the tools',
  ),
  'mcp.server_quarantined': row(
    403,
    'access_denied',
    'The MCP server is under quarantine: an administrator must lift it before it can be called',
  ),
  'mcp.rate_limited': row(
    429,
    'rate_limit_exceeded',
    'The MCP server or the tool has had its calls of this minute: retry later',
  ),
  'mcp.not_connected': row(
    403,
    'access_denied',
    "The MCP server is used with each person's own account: connect yours in the console",
  ),
  'mcp.no_person': row(
    403,
    'access_denied',
    'The MCP server is used with the account of a person, and this credential is not a person’s',
  ),
  'mcp.account_refused': row(403, 'access_denied', 'The MCP server refuses your account: connect it again'),
  'mcp.too_many_sessions': row(503, 'service_unavailable', 'This gateway has too many MCP sessions: retry shortly'),
  'mcp.session_ended': row(503, 'service_unavailable', 'The MCP session has ended: send initialize'),
  client_left: row(499, 'invalid_request_error', 'The client disconnected before its answer was complete'),
  upstream_provider_error: row(502, 'server_error', "The provider's answer could not be used"),
  provider_primary_path_error: row(502, 'server_error', 'No provider could be reached'),
  upstream_error: row(502, 'server_error', 'The provider could not be reached'),
  'mcp.server_unreachable': row(502, 'server_error', 'The MCP server could not be reached'),
  'mcp.server_error': row(502, 'server_error', "The MCP server's answer could not be used"),
  'mcp.server_timeout': row(504, 'server_error', 'The MCP server did not answer in time'),
  'mcp.result_too_large': row(502, 'server_error', "The MCP server's message is larger than the limit"),
  'mcp.server_unavailable': row(503, 'service_unavailable', 'The MCP server is not used at the moment: retry shortly'),
  'mcp.commands_refused': row(
    503,
    'service_unavailable',
    'This gateway starts no local commands: see mcp_local_commands',
  ),
  'mcp.too_many_children': row(503, 'service_unavailable', 'This gateway runs as many local commands as it may'),
  token_state_stale: row(
    503,
    'service_unavailable',
    "This gateway's token state is too old: it cannot reach the control plane",
  ),
  event_outbox_full: row(503, 'service_unavailable', 'This gateway cannot record more events at the moment'),
  file_descriptors_exhausted: row(
    503,
    'service_unavailable',
    'This host has no file descriptor left for the request: retry later, and raise the limit (ulimit -n)',
  ),
  draining: row(503, 'service_unavailable', 'This gateway is shutting down: send the request again'),
  runtime_token_refused: row(
    503,
    'service_unavailable',
    'The control plane refuses the runtime token of this gateway: restart it with a valid token',
  ),
  gateway_busy: row(
    503,
    'service_unavailable',
    'This gateway has no memory left for another request body: retry shortly',
  ),
  not_ready: row(503, 'service_unavailable', 'This gateway is still starting'),
  dependency_unavailable: row(503, 'service_unavailable', 'A required service does not answer: retry shortly'),

  // Between gateways and the control plane
  worker_fenced: row(409, 'invalid_request_error', 'Another process has taken over this worker'),
  worker_rolled_back: row(
    409,
    'invalid_request_error',
    'The data directory of this worker is an older copy: a new instance must start',
  ),
  chain_fork: row(409, 'invalid_request_error', 'An event with this number is already recorded with another content'),
  chain_gap: row(409, 'invalid_request_error', 'Events before these are missing: send from the announced head'),
  events_tampered: row(409, 'invalid_request_error', 'The stored events were altered'),
  state_replaced: row(
    409,
    'invalid_request_error',
    'The primary database was restored or replaced since this gateway last read it',
  ),
  chain_lost: row(409, 'invalid_request_error', 'Events before these are no longer kept on this gateway'),
  session_expired: row(401, 'authentication_error', 'The session credential has expired: bootstrap again'),

  // The command line (the status is what the same mistake would be over HTTP)
  usage: row(422, 'invalid_request_error', 'The command is not valid: see --help'),
  already_running: row(409, 'invalid_request_error', 'Another process uses this data directory'),
  address_in_use: row(409, 'invalid_request_error', 'Another process listens at this address'),
  data_damaged: row(500, 'server_error', 'A file of the data directory is damaged'),
  data_incompatible: row(409, 'invalid_request_error', 'The data is of another version'),
  data_unwritable: row(500, 'server_error', 'The data directory cannot be written'),
  output_unwritable: row(500, 'server_error', 'Standard output cannot be written'),
  api_unreachable: row(503, 'service_unavailable', 'The control plane could not be reached'),
  gateway_unreachable: row(503, 'service_unavailable', 'The gateway could not be reached'),
  gateway_check_failed: row(500, 'server_error', "The request that checks a client's connection failed"),
  unhealthy: row(500, 'server_error', 'Something is wrong with this installation'),
  process_failed: row(500, 'server_error', 'A process of this installation failed'),

  internal: row(500, 'server_error', 'The server failed: look in its log for this request id'),
} satisfies Record<string, Row>

export type FailureCode = keyof typeof failures

/** What a policy decided, as bodies and frames tell it at their top level (policies/README.md). */
export interface Verdictan {
  /** In upper case. */
  verdict: string
  reason_code: string
  escalation?: { id: string; status: 'queued' }
}

/** What a person reads whose request waits: who decides, where, and under which id. */
export const waitingWords = ({ escalation }: Verdictan): string =>
  escalation === undefined
    ? 'A reviewer has to decide about this request.'
    : `A reviewer has to decide about this request, in the inbox of the Gatehouse console or with: gatehouse escalation claim ${escalation.id}. Once it is allowed, send it again.`

/** Whether a text is the one of `waitingWords` for some escalation. */
export function isWaitingWords(text: string): boolean {
  const [id] = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/.exec(text) ?? []
  return (
    id !== undefined && text === waitingWords({ verdict: '', reason_code: '', escalation: { id, status: 'queued' } })
  )
}

/** The limit that refused a request. */
export interface RefusedLimit {
  kind: 'max_budget' | 'max_requests' | 'budget' | 'consumer_group' | 'access_policy' | 'mcp_server' | 'rate_limit'
  /** Of the budget, group or policy; of the token whose limit it is. */
  id: string
  /** Null for the limit of a token. */
  name: string | null
  /** Of a budget: whose spend it bounds. */
  scope?: { kind: 'organization' | 'team' | 'user' | 'token' | 'mcp_server'; id: string | null }
  unit: 'usd' | 'requests' | 'tokens'
  /** How much it allows, for a rate in a minute; null if the gateway does not know it. */
  limit: number | null
  left: number | null
  /** RFC 3339; null if it does not start again. */
  resets_at: string | null
}

export interface FailureDetails {
  /** Set where a policy decided. */
  verdictan?: Verdictan
  /** Replaces the table's message; must never hold a secret, a body or a value that was sent. */
  message?: string
  /** The field that is at fault, as the caller wrote it: `bindings.team_id`. */
  param?: string
  /** Whole seconds after which it makes sense to try again. */
  retryAfter?: number
  /** The limit that refuses, for the event. */
  limit?: RefusedLimit
  /** Further members of the error object, for a caller that can use them: `rotated_to_id`. */
  extra?: Record<string, string | number | boolean | null>
  cause?: unknown
}

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: FailureCode
  readonly status: number
  readonly type: ErrorType
  readonly param: string | null
  readonly retryAfter: number | null
  readonly extra: Record<string, string | number | boolean | null>
  readonly verdictan: Verdictan | null
  readonly limit: RefusedLimit | null

  constructor(code: FailureCode, details: FailureDetails = {}) {
    const { status, type, message } = failures[code]
    super(details.message ?? message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = status
    this.type = type
    this.param = details.param ?? null
    this.retryAfter = details.retryAfter ?? null
    this.extra = details.extra ?? {}
    this.verdictan = details.verdictan ?? null
    this.limit = details.limit ?? null
  }
}

/** Whether a text is the code of a failure of this version. */
export const isFailureCode = (code: string): code is FailureCode => Object.hasOwn(failures, code)

/** Turns whatever was thrown into a Failure; what is unknown becomes `internal`, its text kept as the cause only. */
export const asFailure = (thrown: unknown): Failure =>
  thrown instanceof Failure ? thrown : new Failure('internal', { cause: thrown })

/**
 * The envelope of every route but OAuth's and the messages dialect's (handbook/reference/errors.md,
 * handbook/reference/http.md).
 */
export const envelope = (failure: Failure, requestId: string) => ({
  error: { message: failure.message, type: failure.type, param: failure.param, code: failure.code, ...failure.extra },
  request_id: requestId,
  ...(failure.verdictan === null ? {} : { verdictan: failure.verdictan }),
})

const retryableClientErrors = new Set([408, 409, 429])

/**
 * Whether an answer must carry `x-should-retry: false` (handbook/reference/errors.md): every 4xx but 408, 409 and 429,
 * the usage refusal that waiting does not mend, and 501.
 */
export const mustNotRetry = (status: number, code: string | null): boolean =>
  (status >= 400 && status < 500 && !retryableClientErrors.has(status)) ||
  code === 'usage_authorization_request_limit_exceeded' ||
  status === 501
