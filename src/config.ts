/**
 * Every setting, once: its form, its default and what it means. From this table come the names in the file
 * (`drain_seconds`), the environment (`SERVICE_DRAIN_SECONDS`), the flags (`--drain-seconds`), the help text, `config
 * explain` and the handbook's list. Precedence: default < file < environment < flag (cli/README.md).
 *
 * Longer than most: every setting is a row of one table.
 */
import { Failure } from './failure.ts'
import { address, databaseUrl, httpUrl, origin } from './lib/settings/address-setting.ts'
import { oneOf, type Setting, text, UnfitValue, whole } from './lib/settings/setting.ts'

const filled = text.refine((written) => written !== '', 'Write something, or leave it out')

/** What a person may delegate to an application (oauth/README.md). */
export const delegableScopes = [
  'gateway:invoke',
  'mcp:invoke',
  'tokens:read',
  'events:read',
  'events:export',
  'escalations:read',
] as const
const isDelegable = (written: string): boolean => delegableScopes.some((scope) => scope === written)

/** Whether it can be read as values of W3C Baggage are (section 3.3.1.3). */
function isPercentEncoded(written: string): boolean {
  try {
    decodeURIComponent(written)
    return true
  } catch {
    return false
  }
}

const mebibyte = 1024 * 1024
/** The most text of a request that its event keeps: an event has room for 4 KiB in all. */
export const mostCapturedBytes = 2048

const shape = {
  control_plane_listen: address.default('127.0.0.1:7070').describe('Where the control plane and console listen'),
  gateway_listen: address.default('127.0.0.1:7080').describe('Where the gateway listens'),
  gateway_workers: whole(1, 64)
    .default(1)
    .describe('How many gateway processes share that address, for as many processor cores'),
  data: filled.default('./gatehouse-data').describe('The data directory (mode 0700)'),
  base_url: origin.optional().describe("The control plane's address as others see it; default: where it listens"),
  gateway_url: origin.optional().describe("The gateway's address as applications see it; default: where it listens"),
  console_url: httpUrl.optional().describe("The console's address; default: base_url followed by /console"),
  api_url: origin.optional().describe('The control plane that a gateway or an operator command talks to'),
  api_token: text.optional().describeSecret('The API token a gateway or an operator command uses (a secret)'),
  master_key: text
    .optional()
    .describeSecret('32 bytes in base64 that encrypt provider keys (a secret); default: a file in data'),
  master_key_next: text
    .optional()
    .describeSecret('The key that takes the place of master_key by `master-key rotate` (a secret); goes with it'),
  checkpoint_key_file: filled
    .optional()
    .describe(
      'The private key, in PEM, that signs checkpoints of the event log; default: a file in data, made at first start',
    ),
  environment: text
    .refine((written) => /^[\w.:-]{1,64}$/.test(written), 'Write up to 64 letters, digits and . _ : -')
    .optional()
    .describe('The name of this installation, such as production or staging: part of each event and trace'),
  event_retention_days: whole(1, 36_500).default(90).describe('How long events are kept'),
  state_url: databaseUrl
    .optional()
    .describe('The state database of a libSQL server; default: a file in data. It goes with ledger_url and master_key'),
  state_token: text
    .optional()
    .describeSecret('The credential with which the control plane writes the state (a secret)'),
  events_url: httpUrl
    .optional()
    .describe(
      'The ClickHouse that keeps older events, with the database as its path; default: the ledger keeps them all',
    ),
  events_move_after_seconds: whole(1, 7 * 86_400)
    .default(600)
    .describe('How long events stay in the ledger before they move to events_url'),
  events_user: text.default('default').describe('The user of events_url'),
  events_password: text.optional().describeSecret('The password of events_user (a secret)'),
  ledger_url: databaseUrl.optional().describe('The ledger database of a libSQL server'),
  ledger_token: text
    .optional()
    .describeSecret('The credential with which the control plane writes the ledger (a secret)'),
  state_signing_key_file: filled
    .optional()
    .describe("Ed25519 private key (PEM) that the state's server trusts: signs gateways' read-only credentials"),
  state_read_token: text
    .optional()
    .describeSecret('Without that key: the credential with which every gateway reads the state (a secret)'),
  peer_url: origin
    .optional()
    .describe('Where other control planes reach this one; default: base_url if set, else where it listens'),
  session_idle_seconds: whole(60, 30 * 86_400)
    .default(12 * 3600)
    .describe("How long a person's session lives unused"),
  session_lifetime_seconds: whole(60, 365 * 86_400)
    .default(7 * 86_400)
    .describe("How long a person's session lives at most"),
  break_glass_owner: text
    .refine((written) => /^[^\s@]+@[^\s@]+$/.test(written), 'Write an e-mail address')
    .optional()
    .describe(
      'The e-mail address of the only owner who may sign in by password; default: everybody with a password may',
    ),
  oauth_scopes: text
    .refine((written) => written.split(' ').every(isDelegable), `Name scopes of ${delegableScopes.join(', ')}`)
    .default(delegableScopes.join(' '))
    .describe('The OAuth scopes that are active, separated by spaces; applications are given no other'),
  oauth_client_document_hosts: text
    .refine(
      (written) => written === 'none' || /^(?:\*|[a-z0-9.-]+(?::\d+)?)(?: (?:\*|[a-z0-9.-]+(?::\d+)?))*$/.test(written),
      'Name hosts in small letters, separated by spaces; * for all, none for none',
    )
    .default('*')
    .describe('Whose applications may bring their own OAuth metadata by an https client id: hosts, * for all, or none'),
  oauth_dynamic_registration: oneOf('refused', 'allowed')
    .default('refused')
    .describe('Whether applications may register themselves (RFC 7591); people are asked before they get anything'),
  oauth_code_seconds: whole(10, 600).default(60).describe('How long an authorization code may be exchanged'),
  oauth_device_seconds: whole(60, 1800).default(600).describe('How long a device code waits for a person'),
  oauth_access_seconds: whole(60, 86_400).default(3600).describe('How long an OAuth access token lives'),
  oauth_refresh_idle_seconds: whole(60, 365 * 86_400)
    .default(30 * 86_400)
    .describe('How long an OAuth refresh token lives unused'),
  oauth_refresh_lifetime_seconds: whole(60, 3650 * 86_400)
    .default(90 * 86_400)
    .describe('How long an approval can be refreshed in all'),
  drain_seconds: whole(0, 3600).default(30).describe('How long running requests may finish after SIGTERM'),
  max_staleness_seconds: whole(0, 86_400)
    .default(300)
    .describe('How long a gateway serves without an answer about the primary database; 0 is strict: 3 s'),
  usage_wait_seconds: whole(0, 10)
    .default(2)
    .describe('How long a request may wait for money that running requests hold, before it is refused'),
  body_limit_bytes: whole(1024, 64 * mebibyte)
    .default(10 * mebibyte)
    .describe('The largest JSON body a gateway accepts'),
  upload_limit_bytes: whole(1024, 1024 * mebibyte)
    .default(25 * mebibyte)
    .describe('The largest file in a form, such as audio to transcribe'),
  batch_file_limit_bytes: whole(1024, 1024 * mebibyte)
    .default(200 * mebibyte)
    .describe('The largest file of requests for a batch; it is kept on disk while its lines are checked'),
  batch_line_limit: whole(1, 1_000_000).default(50_000).describe('The most requests in a file for a batch'),
  body_timeout_seconds: whole(1, 3600).default(60).describe('How long the body of a request may take to arrive'),
  memory_bytes: whole(4 * mebibyte, 1024 * 1024 * mebibyte)
    .optional()
    .describe(
      'The memory for request bodies, buffered answers and conversations of WebSockets of all gateway workers; default: half of what the container or the machine has',
    ),
  memory_wait_seconds: whole(0, 600)
    .default(10)
    .describe('How long a request body waits for memory before the request is refused with 503'),
  answer_limit_bytes: whole(1024, 1024 * mebibyte)
    .default(64 * mebibyte)
    .describe('The largest provider answer that is forwarded'),
  connect_timeout_seconds: whole(1, 600).default(10).describe('How long a connection to a provider may take'),
  first_byte_timeout_seconds: whole(1, 3600)
    .default(120)
    .describe('How long a provider may take to send the headers of its answer'),
  idle_timeout_seconds: whole(1, 3600).default(120).describe('How long a provider may be silent within an answer'),
  total_timeout_seconds: whole(1, 86_400).default(1800).describe('How long one answer of a provider may take in all'),
  plain_http_providers: oneOf('loopback', 'anywhere')
    .default('loopback')
    .describe('Where providers of the catalog may be reached by http:// instead of https://'),
  path_retries: whole(0, 5).default(1).describe('How often a failed provider call is retried before the next fallback'),
  retry_wait_seconds: whole(0, 60)
    .default(2)
    .describe('The longest wait before a retry; a provider that asks for a longer wait is not retried'),
  cache_memory_bytes: whole(0, 64 * 1024 * mebibyte)
    .default(64 * mebibyte)
    .describe('The memory of each gateway worker for the answers that a policy answer-cache keeps; 0 keeps none there'),
  cache_file_bytes: whole(0, 1024 * 1024 * mebibyte)
    .default(256 * mebibyte)
    .describe('The size of the file of such answers, which the workers of a host share; 0 keeps none there'),
  circuit_failures: whole(0, 1000)
    .default(5)
    .describe('Consecutive failures after which a provider is skipped while there is another; 0 is never'),
  circuit_open_seconds: whole(1, 3600).default(30).describe('How long it is skipped before it is tried again'),
  stream_hold_bytes: whole(4096, 64 * mebibyte)
    .default(4 * mebibyte)
    .describe('The most of a streamed answer that is held back while a policy needs the whole text'),
  capture_prompt_bytes: whole(0, mostCapturedBytes)
    .default(0)
    .describe(
      'How many bytes of the text of each request its event keeps, at most 2048, without personal data and secrets; 0 keeps none. An event has room for 4 KiB: where the rest of it is long, less text is kept. A policy with capture_escalated keeps 2048 of a request that waits for a person, whatever stands here',
    ),
  webhook_addresses: oneOf('outside', 'any')
    .default('outside')
    .describe(
      'Where webhook policies and alert channels may call: outside, or loopback, link-local and private addresses too',
    ),
  mcp_local_commands: oneOf('refused', 'allowed')
    .default('refused')
    .describe('Whether a gateway starts the commands of MCP servers on its host'),
  mcp_children: whole(1, 10_000)
    .default(32)
    .describe('How many of them run at once in each worker, one for each session'),
  mcp_result_bytes: whole(1024, 1024 * mebibyte)
    .default(10 * mebibyte)
    .describe('The largest message that is accepted from an MCP server'),
  mcp_inspected_texts: whole(1, 1_000_000)
    .default(50_000)
    .describe(
      'The most texts, including names and numbers, of one MCP message that policies inspect: a message with more is refused',
    ),
  mcp_origins: text
    .refine(
      (written) => written.split(' ').every((each) => origin.problem(each) === null),
      'Name origins, with spaces between',
    )
    .optional()
    .describe("Origins whose pages may call /mcp beside the gateway's own, separated by spaces"),
  mcp_sessions: whole(1, 100_000)
    .default(1000)
    .describe(
      'How many MCP sessions each worker keeps; an account or OAuth grant may hold a tenth of them, and its oldest are ended first',
    ),
  mcp_session_idle_seconds: whole(10, 86_400).default(1800).describe('How long an MCP session lives unused'),
  realtime_sessions: whole(0, 100_000)
    .default(500)
    .describe('How many realtime sessions each worker serves at once; 0 refuses them'),
  realtime_session_seconds: whole(1, 86_400).default(3600).describe('How long a realtime session may last'),
  realtime_idle_seconds: whole(1, 86_400)
    .default(600)
    .describe('How long a realtime session may go without an event of its client while no response runs'),
  realtime_frame_bytes: whole(1024, 16 * mebibyte)
    .default(4 * mebibyte)
    .describe('The largest event of a realtime session, in either direction'),
  realtime_buffer_bytes: whole(4096, 64 * mebibyte)
    .default(2 * mebibyte)
    .describe('How much of a realtime session waits in each direction before the sender is paused'),
  realtime_events_per_second: whole(1, 100_000)
    .default(200)
    .describe('How many events a second the client of a realtime session may send'),
  escalation_expiry_seconds: whole(60, 30 * 86_400)
    .default(86_400)
    .describe('How long a request waits for a person before it counts as refused'),
  alert_near_exhaustion_percent: whole(1, 100)
    .default(80)
    .describe('From what share of a budget or of a number of requests on a token is listed among the alerts'),
  alert_expiring_days: whole(1, 365).default(7).describe('How long before its expiry a token is listed'),
  alert_rotation_due_days: whole(1, 3650)
    .default(90)
    .describe('How long after it was made or rotated a token is listed as due for rotation'),
  alert_interval_seconds: whole(1, 3600)
    .default(15)
    .describe('How often alerts are evaluated, by one of the control planes'),
  doctor_interval_seconds: whole(1, 3600)
    .default(60)
    .describe('How often doctor examines the installation by itself, on one of the control planes'),
  verify_interval_seconds: whole(1, 7 * 86_400)
    .default(3600)
    .describe('How often one of the control planes verifies by itself the events that came since the last time'),
  outbox_segment_bytes: whole(256 * 1024, 256 * mebibyte)
    .default(4 * mebibyte)
    .describe("The size of one segment file of a gateway's outbox"),
  outbox_limit_bytes: whole(2 * mebibyte, 1024 * 1024 * mebibyte)
    .default(1024 * mebibyte)
    .describe(
      'The most space for unacknowledged and kept segments; on a small disk as much space as the unacknowledged ones need stays free',
    ),
  outbox_keep_hours: whole(0, 24 * 30)
    .default(24)
    .describe('How long acknowledged segments are kept'),
  sink_hold_days: whole(0, 3650)
    .default(7)
    .describe('How many days beyond event_retention_days events are kept for sinks that have not got them'),
  export_keep_hours: whole(1, 24 * 30)
    .default(24)
    .describe('How long the file of an export made in the background is kept'),
  export_limit_bytes: whole(mebibyte, 1024 * 1024 * mebibyte)
    .default(4096 * mebibyte)
    .describe('The most space for all export files together'),
  otlp_endpoint: httpUrl
    .optional()
    .describe(
      'The collector that traces, and telemetry of clients, are sent to by OTLP over HTTP; default: none, and nothing is traced',
    ),
  otlp_headers: text
    .refine(
      (written) => /^[^=,]+=[^,]*(,[^=,]+=[^,]*)*$/.test(written),
      'Write NAME=VALUE, more of them with commas between',
    )
    .refine(isPercentEncoded, 'Write a per cent sign in a value as %25: values are percent-encoded')
    .optional()
    .describeSecret('The headers of its requests, as NAME=VALUE,NAME=VALUE (a secret)'),
  trace_sample_percent: whole(0, 100)
    .default(100)
    .describe('The share of requests without a traceparent that are traced; a traceparent decides for the others'),
  log_level: oneOf('error', 'warn', 'info', 'debug').default('info').describe('The lowest severity that is logged'),
} satisfies Record<string, Setting<string> | Setting<number>>

type Shape = typeof shape
type ValueOf<Each> = Each extends Setting<infer Value, infer _> ? Value : never
/** The settings that are absent where nobody writes them. */
type Unset = { [Name in keyof Shape]: undefined extends Shape[Name]['standard'] ? Name : never }[keyof Shape]

/** What the rest of the product sees. */
export type Settings = { [Name in Exclude<keyof Shape, Unset>]: ValueOf<Shape[Name]> } & {
  [Name in Unset]?: ValueOf<Shape[Name]> | undefined
}
export type SettingName = keyof Shape
export type SettingOrigin = 'default' | 'file' | 'environment' | 'flag'

export const isSettingName = (name: string): name is SettingName => Object.hasOwn(shape, name)

export const settingNames: readonly SettingName[] = Object.keys(shape).filter(isSettingName)

/** Settings whose value is never shown, not even by `config explain`. */
export const secretSettings: ReadonlySet<SettingName> = new Set(settingNames.filter((name) => shape[name].secret))

/** Settings that have a flag: secrets have none, because every process of a host can read a command line. */
export const flagSettings: readonly SettingName[] = settingNames.filter((name) => !secretSettings.has(name))

export const environmentName = (name: SettingName): string => `SERVICE_${name.toUpperCase()}`
export const flagName = (name: SettingName): string => `--${name.replaceAll('_', '-')}`

class UnfitSetting extends Error {
  readonly setting: SettingName

  constructor(setting: SettingName, message: string) {
    super(message)
    this.setting = setting
  }
}

/** The settings with these values and, for all others, what they are by default. Throws at the first that is unfit. */
function parse(values: Readonly<Partial<Record<SettingName, unknown>>>): Settings {
  const parsed: Record<string, unknown> = {}
  for (const name of settingNames) {
    const { standard, form } = shape[name]
    try {
      const value = values[name] === undefined ? standard : form.read(values[name])
      if (value !== undefined) parsed[name] = value
    } catch (error) {
      if (error instanceof UnfitValue) throw new UnfitSetting(name, error.message)
      throw error
    }
  }
  return parsed as Settings
}

export const settingsSchema = { shape, parse }

export interface SettingSources {
  /** The parsed content of the settings file, and its path for messages. */
  file?: { path: string; values: unknown } | undefined
  environment: Readonly<Record<string, string | undefined>>
  flags: Readonly<Partial<Record<SettingName, string | undefined>>>
}

export interface LoadedSettings {
  settings: Settings
  origins: Readonly<Record<SettingName, SettingOrigin>>
  /** Where each value was written, as a person would look for it; absent for defaults. */
  written: Readonly<Partial<Record<SettingName, string>>>
}

/** The environment that gives another process these settings, whatever else it finds; not those that are left out. */
export function settingsEnvironment(
  settings: Settings,
  leftOut: ReadonlySet<SettingName> = new Set(),
): Record<string, string> {
  const given = settingNames.flatMap((name) => {
    const value = leftOut.has(name) ? undefined : settings[name]
    return value === undefined ? [] : [[environmentName(name), String(value)] as const]
  })
  return Object.fromEntries(given)
}

/** Merges the sources and validates the result. Throws `invalid_parameter`, naming the setting where it was written. */
export function loadSettings({ file, environment, flags }: SettingSources): LoadedSettings {
  const merged: Partial<Record<SettingName, unknown>> = {}
  const origins = Object.fromEntries(settingNames.map((name) => [name, 'default'])) as Record<
    SettingName,
    SettingOrigin
  >
  const written: Partial<Record<SettingName, string>> = {}
  const take = (name: SettingName, value: unknown, from: SettingOrigin, where: string) => {
    merged[name] = value
    origins[name] = from
    written[name] = where
  }
  if (file && file.values !== null && file.values !== undefined) {
    if (typeof file.values !== 'object' || Array.isArray(file.values)) {
      throw new Failure('invalid_parameter', { message: `${file.path} must hold a map of settings` })
    }
    for (const [name, value] of Object.entries(file.values)) {
      if (!isSettingName(name)) {
        throw new Failure('unknown_parameter', { message: `${file.path}: unknown setting "${name}"`, param: name })
      }
      take(name, value, 'file', `${file.path}: ${name}`)
    }
  }
  for (const name of settingNames) {
    const fromEnvironment = environment[environmentName(name)]
    if (fromEnvironment !== undefined && fromEnvironment !== '') {
      take(name, fromEnvironment, 'environment', environmentName(name))
    }
    if (flags[name] !== undefined) take(name, flags[name], 'flag', flagName(name))
  }
  try {
    return { settings: parse(merged), origins, written }
  } catch (error) {
    if (!(error instanceof UnfitSetting)) throw error
    const { setting, message } = error
    throw new Failure('invalid_parameter', { message: `${written[setting] ?? setting}: ${message}`, param: setting })
  }
}
