/**
 * Events in the Open Cybersecurity Schema Framework, version 1.5.0 (schema.ocsf.io): sign-ins are Authentication (3002),
 * refusals of policies, signs of attacks and alerts are Detection Finding (2004), all else is API Activity (6003). What
 * has no place in a class stands in `unmapped`.
 */
import type { Event } from '../../events/event.ts'
import type { EventType } from '../../events/event-types.ts'
import { version } from '../../version.ts'

const findings: ReadonlySet<string> = new Set([
  'gateway.checkpoint_regressed',
  'fleet.event_quarantined',
  'oauth.replay_detected',
  'auth.code_replayed',
  'alert.fired',
  'alert.resolved',
])

const classes = {
  authentication: {
    class_uid: 3002,
    class_name: 'Authentication',
    category_uid: 3,
    category_name: 'Identity & Access Management',
  },
  finding: { class_uid: 2004, class_name: 'Detection Finding', category_uid: 2, category_name: 'Findings' },
  api: { class_uid: 6003, class_name: 'API Activity', category_uid: 6, category_name: 'Application Activity' },
} as const

function classOf({ event_type: type, verdict }: Event): keyof typeof classes {
  if (findings.has(type) || (type === 'decision' && verdict !== 'allow')) return 'finding'
  return type.startsWith('auth.') ? 'authentication' : 'api'
}

/** `severity_id`: 1 informational, 2 low, 3 medium, 4 high, 5 critical. */
const ofVerdict = {
  allow: 1,
  redact: 2,
  rewrite: 2,
  pending: 2,
  escalate: 3,
  approval_required: 3,
  rate_limit: 2,
} as const

/** The severity set on the alert. */
const ofAlert: Readonly<Record<string, number>> = { info: 1, warning: 3, critical: 5 }

/** What somebody should look at although nothing was refused. */
const ofType: Readonly<Partial<Record<EventType, number>>> = {
  'token.emergency_revoked': 3,
  'usage.bound_exceeded': 3,
  'mcp.offer_changed': 3,
  'sink.records_lost': 4,
}

const isAlert = (type: EventType): boolean => type === 'alert.fired' || type === 'alert.resolved'

function severityOf({ event_type: type, verdict, details }: Event): number {
  if (isAlert(type)) return ofAlert[textOf(details?.severity) ?? ''] ?? 3
  if (findings.has(type)) return 4
  const least = ofType[type] ?? (failed.has(verbOf(type)) ? 3 : 1)
  return Math.max(least, Object.hasOwn(ofVerdict, verdict) ? ofVerdict[verdict as keyof typeof ofVerdict] : 3)
}

/** `status_id`: of a finding 1 new and 4 resolved, else 1 success and 2 failure. */
function statusOf({ event_type: type, verdict }: Event, kind: keyof typeof classes): number {
  if (kind === 'finding') return type === 'alert.resolved' ? 4 : 1
  const isSuccess = verdict === 'allow' || verdict === 'redact' || verdict === 'rewrite'
  return isSuccess && !failed.has(verbOf(type)) ? 1 : 2
}

/** An event as an object of OCSF. */
export function ocsfOf(event: Event): Record<string, unknown> {
  const kind = classOf(event)
  const [activity_id, activity_name] = activityOf(event, kind)
  const of = classes[kind]
  const { details = {}, event_attribution: who, event_cost_attribution: cost, metadata } = event
  return {
    ...of,
    activity_id,
    activity_name,
    type_uid: of.class_uid * 100 + activity_id,
    type_name: `${of.class_name}: ${activity_name}`,
    severity_id: severityOf(event),
    time: Date.parse(event.timestamp),
    status_id: statusOf(event, kind),
    status_code: event.reason_code,
    metadata: {
      version: '1.5.0',
      uid: event.event_id,
      event_code: event.event_type,
      ...(event.trace_id === undefined ? {} : { correlation_uid: event.trace_id }),
      product: { name: 'Gatehouse', vendor_name: 'Gatehouse', version },
    },
    ...partsOf[kind](event),
    unmapped: {
      verdict: event.verdict,
      config_version: event.config_version,
      attribution: who,
      details,
      ...(cost === undefined ? {} : { cost }),
      ...(metadata === undefined ? {} : { labels: metadata }),
    },
  }
}

/** What an event's type ends with says what was done: `client_created`, `token.rotated`. */
const verbOf = (type: EventType): string => type.slice(Math.max(type.lastIndexOf('.'), type.lastIndexOf('_')) + 1)

const activity = (id: number, name: string, words: string): [word: string, of: [number, string]][] =>
  words.split(' ').map((word) => [word, [id, name]])

const apiActivities: ReadonlyMap<string, [id: number, name: string]> = new Map([
  ...activity(1, 'Create', 'created cloned queued joined enrolled authorized issued'),
  ...activity(3, 'Update', 'updated rotated ordered changed approved resolved activated deactivated refreshed cleared'),
  ...activity(3, 'Update', 'claimed unclaimed decided undone replaced begun dismissed'),
  ...activity(4, 'Delete', 'deleted revoked left withdrawn ended forgotten'),
])

const failed: ReadonlySet<string> = new Set(['failing', 'failed', 'refused', 'denied', 'lost'])

function activityOf({ event_type: type }: Event, kind: keyof typeof classes): [id: number, name: string] {
  if (kind === 'finding') return type === 'alert.resolved' ? [3, 'Close'] : [1, 'Create']
  if (kind === 'authentication') {
    if (type === 'auth.signed_out' || type === 'auth.session_ended') return [2, 'Logoff']
    const isLogon = type === 'auth.signed_in' || type === 'auth.refused' || type === 'auth.session_started'
    return isLogon ? [1, 'Logon'] : [99, type]
  }
  return apiActivities.get(verbOf(type)) ?? [99, type]
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** `type_id` 1 is a person, 3 a program. */
function userOf({ event_attribution: { user_id: user, token_id: token }, details }: Event) {
  if (user !== null) return { uid: user, type_id: 1 }
  if (token !== null) return { uid: token, type_id: 3 }
  return { uid: textOf(details?.user_id) ?? textOf(details?.actor) ?? 'unknown', type_id: 0 }
}

/** Who did it: an event of the control plane names them, `user:<id>`, and its attribution is what it was done to. */
function doerOf(event: Event) {
  const [, kind, id] = /^(user|token):(.+)$/.exec(textOf(event.details?.actor) ?? '') ?? []
  return id === undefined ? userOf(event) : { uid: id, type_id: kind === 'user' ? 1 : 3 }
}

function actorOf(event: Event) {
  const { session_id: session, client, oauth_client_id: application } = event.event_attribution
  const app = client ?? application ?? null
  return {
    user: doerOf(event),
    ...(session === null ? {} : { session: { uid: session } }),
    ...(app === null ? {} : { app_name: app }),
  }
}

function sourceOf({ event_attribution: { client }, details }: Event) {
  const address = textOf(details?.address)
  return { name: client ?? 'unknown', ...(address === null ? {} : { ip: address }) }
}

const partsOf = {
  api(event: Event) {
    const { details, event_attribution: who, request_id: request } = event
    const [status, provider] = [details?.status, textOf(details?.provider)]
    return {
      actor: actorOf(event),
      api: {
        operation: textOf(details?.route) ?? event.event_type,
        service: { name: 'gatehouse', ...(who.gateway_id === null ? {} : { uid: who.gateway_id }) },
        ...(request === null || request === '' ? {} : { request: { uid: request } }),
        ...(typeof status === 'number' ? { response: { code: status } } : {}),
      },
      src_endpoint: sourceOf(event),
      ...(provider === null ? {} : { dst_endpoint: { name: provider } }),
      ...(typeof status === 'number' ? { http_response: { code: status } } : {}),
    }
  },
  authentication: (event: Event) => ({
    user: userOf(event),
    actor: actorOf(event),
    service: { name: 'gatehouse' },
    src_endpoint: sourceOf(event),
  }),
  finding: (event: Event) => ({
    evidences: [{ actor: actorOf(event) }],
    ...(isAlert(event.event_type) ? alertParts(event) : detectionParts(event)),
    ...(event.request_id === null || event.request_id === '' ? {} : { resources: [{ uid: event.request_id }] }),
  }),
}

const detectionParts = ({ event_id, event_type, verdict, reason_code, timestamp, details }: Event) => ({
  finding_info: {
    uid: event_id,
    title: `${verdict}: ${reason_code}`,
    types: [event_type],
    created_time: Date.parse(timestamp),
    ...(textOf(details?.policy_id) === null ? {} : { analytic: { uid: details?.policy_id, type_id: 1 } }),
  },
})

/** What an alert found has one `uid`, from when it fired to when it is over. */
function alertParts({ event_id, event_type, timestamp, details }: Event) {
  const [name, about, condition] = [textOf(details?.name), textOf(details?.about), textOf(details?.kind)]
  const alert = textOf(details?.alert_id) ?? name
  return {
    is_alert: true,
    ...(about === null ? {} : { message: about }),
    finding_info: {
      uid: textOf(details?.firing_id) ?? event_id,
      title: name ?? event_type,
      ...(about === null ? {} : { desc: about }),
      types: [condition ?? event_type],
      ...(event_type === 'alert.fired'
        ? { created_time: Date.parse(timestamp) }
        : { modified_time: Date.parse(timestamp) }),
      ...(alert === null ? {} : { analytic: { uid: alert, ...(name === null ? {} : { name }), type_id: 1 } }),
    },
  }
}
