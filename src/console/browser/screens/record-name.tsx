/**
 * The name of a record that is known by its id. Each is asked for once, if no answer with events or teams has told it.
 * Without permission, shows the kind of the record and not its id, which would say nothing.
 */
import { signal } from '@preact/signals'
import { Fragment } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Permission } from '../../../identity/permissions.ts'
import { href } from '../address.ts'
import { Refusal, request } from '../api/request.ts'
import type { MentionedName } from '../api/routes.ts'
import { shortId } from '../formats.ts'
import type { JsonObject } from '../parts/forms/schema-form.tsx'
import { userText } from '../parts/user-text.tsx'
import { caller, hasPermission } from '../session.ts'

const opened = (path: string, kind: string) => (id: string) => href(path, { kind, open: id })

interface Kind {
  path: string
  permission: Permission
  /** In a word or two. */
  what: string
  to(id: string): string
}

const kinds = {
  tokens: { path: '/v1/tokens', permission: 'tokens:read', what: 'token', to: (id: string) => href(`/tokens/${id}`) },
  users: { path: '/v1/users', permission: 'members:read', what: 'person', to: opened('/people', 'people') },
  teams: { path: '/v1/teams', permission: 'members:read', what: 'team', to: opened('/people', 'teams') },
  policies: {
    ...{ path: '/v1/policies', permission: 'policies:read', what: 'policy' },
    to: (id: string) => href(`/policies/${id}`),
  },
  budgets: {
    ...{ path: '/v1/budgets', permission: 'catalog:read', what: 'budget' },
    to: (id: string) => href(`/budgets/${id}`),
  },
  providers: {
    ...{ path: '/v1/catalog/providers', permission: 'catalog:read', what: 'provider' },
    to: opened('/catalog', 'providers'),
  },
  gateways: {
    ...{ path: '/v1/gateways', permission: 'catalog:read', what: 'gateway' },
    to: opened('/catalog', 'gateways'),
  },
  'mcp-servers': {
    ...{ path: '/v1/catalog/mcp-servers', permission: 'catalog:read', what: 'MCP server' },
    to: opened('/catalog', 'mcp-servers'),
  },
  'access-policies': {
    ...{ path: '/v1/access-policies', permission: 'catalog:read', what: 'access policy' },
    to: opened('/catalog', 'access-policies'),
  },
} as const satisfies Readonly<Record<string, Kind>>
export type NamedKind = keyof typeof kinds

interface Known {
  /** Null: it was deleted, or the caller may not read it. */
  name: string | null
  readable: boolean
}

const known = signal<ReadonlyMap<string, Known>>(new Map())
const asked = new Set<string>()

/** Keeps the names that an answer gave. */
export function learnNames(mentioned: readonly Omit<MentionedName, 'kind'>[]): void {
  const changed = mentioned.filter(({ id, name, readable }) => {
    const before = known.peek().get(id)
    return before?.name !== name || before.readable !== readable
  })
  if (changed.length === 0) return
  known.value = new Map([
    ...known.peek(),
    ...changed.map(({ id, name, readable }) => [id, { name, readable }] as const),
  ])
}

/** What a record is called; null where that is not known. */
export const knownName = (id: string): string | null => known.value.get(id)?.name ?? null

/** The same at this moment, without being told of later changes. */
const nameOf = (id: string): string | undefined => known.peek().get(id)?.name ?? undefined

interface Props {
  kind: NamedKind
  id: string | null | undefined
  /** Whether it leads to the record, for those who may open it. */
  linked?: boolean
}

export function RecordName({ kind, id, linked = false }: Props) {
  const { path, permission, to }: Kind = kinds[kind]
  const mayRead = hasPermission(permission)
  useEffect(() => {
    if (id == null || asked.has(id) || nameOf(id) !== undefined || !mayRead) return
    asked.add(id)
    const know = (found: Known) => {
      if (nameOf(id) === undefined) known.value = new Map(known.peek()).set(id, found)
    }
    request<JsonObject>('GET', `${path}/${encodeURIComponent(id)}`).then(
      ({ name, email }) => know({ name: String(name ?? email), readable: true }),
      (error: unknown) => {
        // It was deleted, or is another's: its id is shown. After any other failure it is asked for when next shown.
        const isGone = error instanceof Refusal && (error.status === 403 || error.status === 404)
        if (!isGone) asked.delete(id)
        know({ name: null, readable: !isGone })
      },
    )
  }, [id, mayRead])
  if (id == null) return <>–</>
  const found = known.value.get(id)
  if (found === undefined && !mayRead) return <>{withoutName(kind, id)}</>
  const shown = (
    <span class="name" title={id}>
      {found === undefined ? '…' : userText(found.name ?? shortId(id))}
    </span>
  )
  return linked && found?.readable !== false ? <a href={to(id)}>{shown}</a> : shown
}

/** Several of a kind. */
export const RecordNames = ({ kind, ids }: { kind: NamedKind; ids: readonly string[] }) => (
  <>
    {ids.map((id, index) => (
      <Fragment key={id}>
        {index > 0 && ', '}
        <RecordName kind={kind} id={id} />
      </Fragment>
    ))}
  </>
)

/** What a record is for a person who may not read it: `Your team`. */
export function withoutName(kind: NamedKind, id: string): string {
  const user = caller.value?.user
  if (id === user?.id) return 'You'
  const isOwn = kind === 'teams' && user?.team_ids.includes(id) === true
  return `${isOwn ? 'Your' : 'Another'} ${kinds[kind].what}`
}
