/** The kinds of records that the search finds by name or id, beside tokens and policies, which have searches of their own. */
import type { Permission } from '../../../identity/permissions.ts'
import { href } from '../address.ts'
import { api, type RecordKindName } from '../api/routes.ts'
import type { JsonObject } from '../parts/forms/schema-form.tsx'
import { hasPermission } from '../session.ts'
import { everyRecord, isSearched, recordsNamed } from './catalog/record-options.ts'

export interface Hit {
  to: string
  title: string
  /** What it is, in a word or two. */
  what: string
}

interface Searched {
  what: string
  path: string
  read: Permission
  /** The screen that lists these records. */
  screen: string
  kind?: string
  /** The member that identifies a record; `id` unless another is named. */
  idName?: string
}

const searched: readonly Searched[] = [
  { what: 'Team', path: '/v1/teams', read: 'members:read', screen: '/people', kind: 'teams' },
  { what: 'Person', path: '/v1/users', read: 'members:read', screen: '/people' },
  { what: 'Model', path: '/v1/catalog/models', read: 'catalog:read', screen: '/catalog', kind: 'models' },
  { what: 'Provider', path: '/v1/catalog/providers', read: 'catalog:read', screen: '/catalog' },
  {
    what: 'MCP server',
    path: '/v1/catalog/mcp-servers',
    read: 'catalog:read',
    screen: '/catalog',
    kind: 'mcp-servers',
  },
  { what: 'Gateway', path: '/v1/gateways', read: 'catalog:read', screen: '/catalog', kind: 'gateways' },
  { what: 'Budget', path: '/v1/budgets', read: 'catalog:read', screen: '/catalog', kind: 'budgets' },
  {
    ...{ what: 'Consumer group', path: '/v1/consumer-groups', read: 'catalog:read' },
    ...{ screen: '/catalog', kind: 'consumer-groups' },
  },
  {
    ...{ what: 'Access policy', path: '/v1/access-policies', read: 'catalog:read' },
    ...{ screen: '/catalog', kind: 'access-policies' },
  },
  {
    ...{ what: 'Dimension', path: '/v1/attribution-dimensions', read: 'catalog:read' },
    ...{ screen: '/catalog', kind: 'dimensions' },
  },
  {
    ...{ what: 'Application', path: '/v1/oauth/clients', read: 'oauth-clients:read' },
    ...{ screen: '/applications', idName: 'client_id' },
  },
]

/** Of one kind: the list shows the rest. */
const mostOfKind = 20

const readable = (): Searched[] => searched.filter(({ read }) => hasPermission(read))

/** One read for each kind that the caller may read: the records whose name, e-mail address or id has the words. */
export const recordsWith = (words: string, signal: AbortSignal): Promise<Hit[]>[] =>
  readable().map(async (place) => {
    const { records, more } = await recordsOfKind(place, words, signal)
    const hits = records.map((record) => hitOf(place, record))
    if (!more) return hits
    const to = href(place.screen, { kind: place.kind })
    return [...hits, { to, title: 'More in the list', what: place.what }]
  })

/** Those that have the words: long lists are searched by the API, short ones are read. */
async function recordsOfKind(place: Searched, words: string, signal: AbortSignal) {
  if (isSearched(place.path)) return await recordsNamed(place.path, words, { limit: mostOfKind, signal })
  const sought = words.toLowerCase()
  const fitting = (await everyRecord(place.path, signal)).filter((record) =>
    namesOf(record, place).some((name) => name.toLowerCase().includes(sought)),
  )
  return { records: fitting.slice(0, mostOfKind), more: fitting.length > mostOfKind }
}

/** What a record is called, and where it is shown. */
const shown: Readonly<Record<RecordKindName, readonly [what: string, to: (id: string) => string]>> = {
  token: ['Token', (id) => href(`/tokens/${id}`)],
  policy: ['Policy', (id) => href(`/policies/${id}`)],
  escalation: ['Escalation', (id) => href('/escalations', { id, status: 'every' })],
  team: ['Team', (open) => href('/people', { kind: 'teams', open })],
  user: ['Person', (open) => href('/people', { open })],
  provider: ['Provider', (open) => href('/catalog', { open })],
  mcp_server: ['MCP server', (open) => href('/catalog', { kind: 'mcp-servers', open })],
  gateway: ['Gateway', (open) => href('/catalog', { kind: 'gateways', open })],
  budget: ['Budget', (id) => href(`/budgets/${id}`)],
  consumer_group: ['Consumer group', (open) => href('/catalog', { kind: 'consumer-groups', open })],
  access_policy: ['Access policy', (open) => href('/catalog', { kind: 'access-policies', open })],
  dimension: ['Dimension', (open) => href('/catalog', { kind: 'dimensions', open })],
  application: ['Application', (open) => href('/applications', { open })],
}

/** The record of this id. */
export async function recordsOfId(id: string, signal: AbortSignal): Promise<Hit[]> {
  const { records } = await api('GET /v1/records/{id}', { params: { id }, signal })
  return records.map(({ kind, name }) => {
    const [what, to] = shown[kind]
    return { to: to(id), title: name ?? id, what }
  })
}

const namesOf = (record: JsonObject, { idName = 'id' }: Searched): string[] =>
  [record.name, record.email, record.client_name, record[idName]].filter((name) => typeof name === 'string')

function hitOf(place: Searched, record: JsonObject): Hit {
  const id = String(record[place.idName ?? 'id'])
  const [title = id] = namesOf(record, place)
  return { to: href(place.screen, { kind: place.kind, open: id }), title, what: place.what }
}
