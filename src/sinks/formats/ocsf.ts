/**
 * Events in the Open Cybersecurity Schema Framework, version 1.5.0 (schema.ocsf.io): sign-ins are Authentication (3002),
 * refusals of policies and signs of attacks are Detection Finding (2004), all else is API Activity (6003). What has no
 * place in a class stands in `unmapped`.
 */
import type { Event } from '../../events/event.ts'
import { version } from '../../version.ts'

const findings: ReadonlySet<string> = new Set([
  'gateway.checkpoint_regressed',
  'fleet.event_quarantined',
  'oauth.replay_detected',
  'auth.code_replayed',
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

/** `severity_id`: informational, low, medium, high. */
const severities = {
  allow: 1,
  redact: 2,
  rewrite: 2,
  pending: 2,
  escalate: 3,
  approval_required: 3,
  rate_limit: 2,
} as const

const severityOf = (event: Event): number => {
  if (findings.has(event.event_type)) return 4
  const { verdict } = event
  return Object.hasOwn(severities, verdict) ? severities[verdict as keyof typeof severities] : 3
}

/** An event as an object of OCSF. */
export function ocsfOf(event: Event): Record<string, unknown> {
  const kind = classOf(event)
  const [activity_id, activity_name] = activityOf(event, kind)
  const of = classes[kind]
  const isSuccess = event.verdict === 'allow' || event.verdict === 'redact' || event.verdict === 'rewrite'
  const { details = {}, event_attribution: who, event_cost_attribution: cost, metadata } = event
  return {
    ...of,
    activity_id,
    activity_name,
    type_uid: of.class_uid * 100 + activity_id,
    type_name: `${of.class_name}: ${activity_name}`,
    severity_id: severityOf(event),
    time: Date.parse(event.timestamp),
    status_id: kind === 'finding' ? 1 : isSuccess ? 1 : 2,
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

const ended = /\.(deleted|revoked|emergency_revoked|deactivated|left|unclaimed|withdrawn)$/
const begun = /\.(created|cloned|queued|joined|enrolled|authorized|issued|token_issued|team_created|client_created)$/
const changed = /\.\w*(updated|rotated|ordered|changed|approved|resolved|activated|refreshed|cache_cleared)$/

function activityOf({ event_type: type }: Event, kind: keyof typeof classes): [id: number, name: string] {
  if (kind === 'finding') return [1, 'Create']
  if (kind === 'authentication') {
    if (type === 'auth.signed_out' || type === 'auth.session_ended') return [2, 'Logoff']
    const isLogon = type === 'auth.signed_in' || type === 'auth.refused' || type === 'auth.session_started'
    return isLogon ? [1, 'Logon'] : [99, type]
  }
  if (ended.test(type)) return [4, 'Delete']
  if (begun.test(type)) return [1, 'Create']
  return changed.test(type) ? [3, 'Update'] : [99, type]
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
    finding_info: {
      uid: event.event_id,
      title: `${event.verdict}: ${event.reason_code}`,
      types: [event.event_type],
      created_time: Date.parse(event.timestamp),
      ...(textOf(event.details?.policy_id) === null ? {} : { analytic: { uid: event.details?.policy_id, type_id: 1 } }),
    },
    ...(event.request_id === null || event.request_id === '' ? {} : { resources: [{ uid: event.request_id }] }),
  }),
}
