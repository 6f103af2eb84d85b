/** The flags that filter events, and the parameters of `/v1/events` that they stand for. */
import { eventTypes } from '../../../src/events/event-types.ts'
import { Failure } from '../../../src/failure.ts'
import { nearest } from '../../../src/lib/text/nearest.ts'
import type { Api } from '../../command/api.ts'
import { idOf } from '../../command/record-names.ts'
import { storedVerdict } from './event-line.ts'

export const filterFlags = {
  until: { type: 'string', description: 'Only events before this instant', valueHint: 'RFC 3339' },
  'event-type': { type: 'string', description: 'Only events of this type' },
  'gateway-id': { type: 'string', description: 'Only events of this gateway', valueHint: 'NAME|UUID' },
  verdict: { type: 'string', description: 'Only events with this verdict' },
  'request-id': { type: 'string', description: 'Only events of requests with this x-request-id' },
  'exchange-id': { type: 'string', description: 'Only events of this request', valueHint: 'UUID' },
  'exchange-prefix': {
    type: 'string',
    description: 'Only events of requests whose exchange id begins so',
    valueHint: 'HEX',
  },
  'session-id': { type: 'string', description: 'Only events of this session' },
  client: { type: 'string', description: 'Only events of this known client, such as claude-code' },
  token: { type: 'string', description: 'Only events of this token', valueHint: 'NAME|UUID' },
  'token-id': { type: 'string', description: 'Only events of this token', valueHint: 'NAME|UUID' },
  user: { type: 'string', description: 'Only events of this person', valueHint: 'EMAIL|UUID' },
  'user-id': { type: 'string', description: 'Only events of this person', valueHint: 'EMAIL|UUID' },
  team: { type: 'string', description: 'Only events of this team', valueHint: 'NAME|UUID' },
  dimension: {
    type: 'string',
    description: 'Only events with this value of a dimension of attribution',
    valueHint: 'customer=acme',
  },
  model: { type: 'string', description: 'Only events of this model' },
  provider: { type: 'string', description: 'Only events of this provider' },
  policy: { type: 'string', description: 'Only events that this policy took part in', valueHint: 'NAME|UUID' },
  'reason-code': { type: 'string', description: 'Only events with this reason' },
  'reason-text': { type: 'string', description: 'Only events with this text in their reason' },
  status: { type: 'string', description: 'Only events with an HTTP status of this class', valueHint: '2xx|4xx|5xx' },
  'min-cost': {
    type: 'string',
    description: 'Only requests that cost at least this much, in US dollars',
    valueHint: '0.25',
  },
  'min-latency-ms': {
    type: 'string',
    description: 'Only requests and attempts that took at least this long, in milliseconds',
    valueHint: 'N',
  },
} as const

/** Where the records are listed that these flags name. Of the others the API takes names. */
export const filterReferences = { gateway_id: '/v1/gateways', token_id: '/v1/tokens', user_id: '/v1/users' }

/** The parameters of the flags that were given. Throws `usage` for an unknown verdict. */
export function filterQuery(
  args: Readonly<Partial<Record<keyof typeof filterFlags, string | undefined>>>,
): Record<string, string | undefined> {
  const given = new Map(Object.entries(args))
  checkEventType(args['event-type'])
  const query = Object.keys(filterFlags).map((flag) => [flag.replaceAll('-', '_'), given.get(flag)])
  return {
    ...Object.fromEntries(query),
    verdict: args.verdict === undefined ? undefined : storedVerdict(args.verdict),
  }
}

/** Throws `usage` for a mistyped type. Of others the control plane, which may be newer, decides. */
function checkEventType(type: string | undefined): void {
  const near = type === undefined || known.has(type) ? null : nearest(type, eventTypes)
  if (near === null) return
  throw new Failure('usage', { message: `--event-type: there is no type "${type}": did you mean ${near}?` })
}

const known: ReadonlySet<string> = new Set(eventTypes)

/** The same parameters with ids for names: for a query that is sent again and again. */
export async function withFilterIds<Query extends Record<string, string | undefined>>(
  query: Query,
  api: Api,
): Promise<Query> {
  const ids: Record<string, string> = {}
  for (const [name, list] of Object.entries(filterReferences)) {
    const named = query[name]
    if (named !== undefined) ids[name] = await idOf(`--${name.replaceAll('_', '-')}`, named, list, api)
  }
  return { ...query, ...ids }
}
