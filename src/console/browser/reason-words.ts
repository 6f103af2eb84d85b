/**
 * Reason codes in words, each a clause that follows "because". The compiler names a failure of the server that has no
 * words here, and the test a code that the gateway, the policies or the control plane write beside the failures.
 */
import type { FailureCode } from '../../failure.ts'

/** Only commands and processes end with these: no event says them. */
type CommandFailure =
  | 'usage'
  | 'already_running'
  | 'address_in_use'
  | 'data_damaged'
  | 'data_incompatible'
  | 'data_unwritable'
  | 'output_unwritable'
  | 'api_unreachable'
  | 'gateway_unreachable'
  | 'gateway_check_failed'
  | 'unhealthy'
  | 'process_failed'

const failureWords: Readonly<Record<Exclude<FailureCode, CommandFailure>, string>> = {
  invalid_json: 'its body is not JSON',
  json_too_deep: 'its JSON is nested too deep',
  invalid_form: 'its body is not a form',
  invalid_encoding: 'its body is not encoded as it says',
  invalid_request_id: 'its request id has characters that are not allowed',
  bad_request: 'it is malformed',
  not_found: 'what it names does not exist',
  method_not_allowed: 'its path does not accept its method',
  gone: 'its route is retired',
  conflict: 'it conflicts with the present state',
  consent_outdated: 'what was asked has changed since it was shown',
  version_mismatch: 'the record has changed since it was read',
  request_timeout: 'its body did not arrive in time',
  request_too_large: 'its body is too large',
  upgrade_required: 'its path needs a WebSocket',
  unsupported_media_type: 'its body has a content type that is not accepted',
  invalid_parameter: 'a field is missing or has a wrong value',
  unknown_parameter: 'it has a field that its route does not know',
  export_elsewhere: 'another control plane has the file of the export',
  export_too_large: 'the files of exports use all their space',
  export_overtaken: 'retention removed events before the export had read them',
  invalid_cursor: 'its cursor belongs to another query',
  previous_response_not_found: 'the response that it continues is not known',
  session_id_mismatch: 'its two session ids differ',
  idempotency_key_reused: 'its idempotency key was used with another body',
  idempotency_key_used: 'its idempotency key made a secret already',
  idempotency_in_flight: 'a request with its idempotency key still runs',
  missing_api_key: 'it carried no token',
  invalid_api_token: 'its token is unknown, was revoked or was rotated',
  'tokens.expired': 'its token has expired',
  invalid_credentials: 'the e-mail address or the password is wrong',
  second_factor_required: 'the code of the second factor is missing',
  invalid_second_factor: 'the code of the second factor is wrong',
  sign_in_throttled: 'there were too many attempts to sign in',
  csrf_refused: 'it did not come from a page of the console',
  permission_denied: 'its token lacks the permission',
  insufficient_scope: 'its access token lacks the scope',
  access_denied: 'its token may not do this',
  'tokens.gateway_not_allowed': 'its token is bound to another gateway',
  'tokens.provider_not_allowed': 'its token is bound to another provider',
  'tokens.model_not_allowed': 'its token may not use this model',
  'tokens.purpose_not_allowed': 'a token of this purpose may not call this route',
  invalid_code: 'the code is unknown, used or expired',
  invalid_setup_link: 'the setup link is unknown, used or expired',
  token_scope_widened: 'a token can only be narrowed',
  token_not_active: 'the token is not active',
  token_already_rotated: 'the token was rotated already',
  content_policy_violation: 'a policy blocked it',
  policy_denied: 'a policy denied it',
  policy_rate_limited: 'a policy limits the rate of such requests',
  'policy.incompatible_active_chain': 'a policy has a stage that this route does not support',
  'policy.escalated': 'it waits for the decision of a person',
  pattern_unbounded: 'a pattern for streams has no bounded length',
  'tokens.budget_exhausted': 'its token has spent its budget',
  'tokens.request_limit_exhausted': 'its token has used all its requests',
  'tokens.model_unpriced': 'its token has a budget, but the model has no price',
  'tokens.cost_unbounded': 'its token has a budget, but the cost of the request has no limit',
  usage_authorization_budget_exceeded: 'a budget is spent or reserved by running requests',
  usage_authorization_request_limit_exceeded: 'its token has used all its requests',
  usage_authorization_rate_limited: 'its token or access policy has used its rate for this minute',
  consumer_group_rate_limit_exceeded: 'its consumer group has used its rate for this minute',
  request_exceeds_rate_limit: 'it takes more tokens than a limit allows in a minute',
  usage_authorization_too_many_values: 'a limit for each value counts as many values as it may',
  attribution_refused: 'a dimension of attribution is missing or has a value that is not allowed',
  usage_authority_unavailable: 'the control plane, which keeps the limits, could not be reached',
  model_family_unsupported: 'the model does not answer requests of this kind',
  translation_unsupported: 'it asks for what the language of the provider cannot say',
  realtime_secret_refused: 'the client secret of its realtime session is refused',
  realtime_session_ended: 'the realtime session has ended',
  realtime_sessions_exhausted: 'the gateway has as many realtime sessions as it may',
  realtime_rate_exceeded: 'it sent too many realtime events a second',
  transcription_required: 'its audio has no transcript, and policies read text',
  token_count_unsupported: 'the provider does not count tokens',
  stored_object_not_found: 'the stored object that it names is not known',
  stored_responses_unsupported: 'the provider does not store responses',
  batches_unsupported: 'the provider has no batches',
  batch_file_outdated: 'the file of its batch was checked under other policies',
  uploads_full: 'the gateway reads as many files as it may at once',
  telemetry_not_configured: 'no collector of telemetry is configured',
  telemetry_refused: 'the collector refused the telemetry',
  telemetry_limited: 'its token sends too much telemetry',
  telemetry_unavailable: 'the collector did not take the telemetry',
  background_full: 'the gateway runs as many responses in the background as it may',
  model_not_found: 'no provider has this model',
  'mcp.unknown_name': 'no MCP server has what it names',
  'mcp.unknown_tool': 'no MCP server has this tool',
  'mcp.server_quarantined': 'the MCP server is under quarantine',
  'mcp.rate_limited': 'the MCP server or the tool has used its rate for this minute',
  'mcp.not_connected': 'the person has not connected an account of this MCP server',
  'mcp.no_person': 'the MCP server needs the account of a person, and its token is no person’s',
  'mcp.account_refused': 'the MCP server refuses the person’s account',
  'mcp.too_many_sessions': 'the gateway has too many MCP sessions',
  'mcp.session_ended': 'the MCP session has ended',
  client_left: 'the client disconnected before the answer was complete',
  upstream_provider_error: 'the provider’s answer could not be used',
  provider_primary_path_error: 'no provider could be reached',
  upstream_error: 'the provider could not be reached',
  'mcp.server_unreachable': 'the MCP server could not be reached',
  'mcp.server_error': 'the MCP server answered with an error',
  'mcp.server_timeout': 'the MCP server did not answer in time',
  'mcp.result_too_large': 'the message of the MCP server is too large',
  'mcp.server_unavailable': 'the MCP server is not used at the moment',
  'mcp.commands_refused': 'this gateway starts no local MCP servers',
  'mcp.too_many_children': 'the gateway runs as many local MCP servers as it may',
  token_state_stale: 'the gateway’s copy of the state was too old',
  event_outbox_full: 'the gateway’s event outbox was full',
  file_descriptors_exhausted: 'the gateway had no file descriptor left',
  draining: 'the gateway was shutting down',
  runtime_token_refused: 'the runtime token of the gateway is refused',
  gateway_busy: 'the gateway had too many requests',
  not_ready: 'the gateway was still starting',
  dependency_unavailable: 'a service that it needs did not answer',
  worker_fenced: 'another process has taken over the worker of the gateway',
  worker_rolled_back: 'the worker’s data is older than what the control plane knows of it',
  chain_fork: 'an event of this number is recorded with another content',
  chain_gap: 'events before these are missing',
  events_tampered: 'the stored events were altered',
  state_replaced: 'the state was restored or replaced',
  chain_lost: 'the gateway no longer has the events before these',
  session_expired: 'the credential of its session has expired',
  internal: 'the server failed',
}

const otherWords = {
  'provider.error': 'the provider answered with an error',
  'provider.invalid_answer': 'the provider’s answer could not be read',
  'provider.answer_too_large': 'the provider’s answer is too large',
  'provider.interrupted': 'the provider broke off its answer',
  'provider.timeout': 'the provider did not answer in time',
  'provider.unreachable': 'the provider could not be reached',
  'provider.response_gone': 'the provider no longer has the response',
  'client.left': 'the client disconnected before the answer was complete',
  'client.cancelled': 'the client cancelled it',
  'gateway.interrupted': 'the gateway ended while the request ran',
  'gateway.drained': 'the gateway was shutting down',
  'gateway.file_descriptors_exhausted': 'the gateway had no file descriptor left',
  'policy.pii': 'it has personal data',
  'policy.secrets': 'it has a secret',
  'policy.term_filter': 'it has a term that is filtered',
  'policy.pattern_filter': 'it has text that fits a filtered pattern',
  'policy.prompt_injection': 'it looks like a prompt injection',
  'policy.request_limit': 'it exceeds a limit for a single request',
  'policy.request_rewrite': 'a policy rewrites such requests',
  'policy.response_rewrite': 'a policy rewrites such answers',
  'policy.restored': 'replaced values were put back into the answer',
  'policy.json_schema': 'the answer does not fit the JSON schema',
  'policy.tool_not_allowed': 'a tool is not allowed',
  'policy.target_changed': 'a policy changed which tool or resource it names',
  'policy.audit': 'a policy records such requests',
  'policy.webhook': 'a webhook decided so',
  'policy.broken': 'a policy could not be evaluated',
  'realtime.audio_withheld': 'audio is held back where policies read the answer',
  'mcp.declined': 'the caller declined what the MCP server asked',
  'mcp.given_up': 'the caller gave the call up',
  'mcp.unknown_method': 'it names a method that MCP does not have',
  'mcp.session_unknown': 'its MCP session is not known',
  'mcp.first_use': 'the server was used for the first time',
  'mcp.definition_changed': 'a definition differs from the approved one',
  'mcp.definition_added': 'a definition was added after the first use',
  'refusals.summed': 'refusals without a token were counted together',
  'usage.host_crashed': 'the host of the gateway crashed',
  'usage.worker_silent': 'the gateway process was silent for too long',
  'batch.line_repeated': 'a line of the batch was answered twice',
  'batch.lines_missing': 'lines of the batch have no answer',
  'batch.lines_unknown': 'the batch has answers to lines that it was not sent',
  'batch.usage_missing': 'answers of the batch say no usage',
  'sink.refused': 'the receiver refused a record',
  'export.not_written': 'the file of the export could not be written',
  'state.restored': 'the state was restored from a backup',
  'ledger.restored': 'the ledger was restored from a backup',
  'event.damaged': 'the event cannot be read',
  'event.altered': 'the event was altered',
  'event.digest_altered': 'the digest of the event was altered',
  'event.inserted': 'the event was inserted afterwards',
  'event.not_valid': 'the event is not valid',
  'event.quarantine_altered': 'the event in quarantine was altered',
  'event.repeated_id': 'the id of the event repeats',
  'event.time_altered': 'the time of the event was altered',
  'checkpoint.altered': 'the checkpoint was altered',
  'checkpoint.begun_anew': 'the gateway began its record anew',
  'checkpoint.missing': 'the checkpoint is missing',
  'checkpoint.seen_going_back': 'the gateway saw the control plane go back in time',
  'checkpoint.went_back': 'the control plane knew less than before',
  invalid_grant: 'the code or the refresh token is unknown, used or expired',
  invalid_client: 'the application did not prove who it is',
  provider_denied: 'the identity provider refused the sign-in',
  provider_refused_client: 'the identity provider refuses this installation',
  invalid_answer: 'the answer could not be read',
}

const words: ReadonlyMap<string, string> = new Map(Object.entries({ ...failureWords, ...otherWords }))

/** The clause for a code of the server's own; undefined for what a policy of the installation gives as its reason. */
export const knownReason = (code: string): string | undefined => words.get(code)

/** A reason in words, also one that an installation made up. */
export const reasonWords = (code: string): string => knownReason(code) ?? `a policy gave the reason “${code}”`

const countedCode = /(?<=[:,] \d[\d,]* )[a-z]\w*(?:\.\w+)*/g

/** A text of the server that counts codes, `12 policy.pii, 3 invalid_api_token`, with words for those it knows. */
export const countedInWords = (text: string): string =>
  text.replaceAll(countedCode, (code) => {
    const known = knownReason(code)
    return known === undefined ? code : `because ${known}`
  })

/** As a text of its own: `Its token has expired`. */
export function reasonTitle(code: string): string {
  const text = reasonWords(code)
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
