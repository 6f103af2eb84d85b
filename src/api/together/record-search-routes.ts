/**
 * `GET /v1/records/{id}`: which record has this id, of those that the caller may read. The routes of each kind are asked
 * as the caller would ask them, so that each decides by itself what the caller sees.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import type { Permission } from '../../identity/permissions.ts'
import { conventions } from '../conventions.ts'
import { idParams } from '../resource.ts'

/** Every kind that is found: by its own route, where `{id}` stands for the id, and what its records are called by. */
const kinds = {
  token: { path: '/v1/tokens/{id}', read: 'tokens:read', name: 'name' },
  policy: { path: '/v1/policies/{id}', read: 'policies:read', name: 'name' },
  escalation: { path: '/v1/escalations/{id}', read: 'escalations:read', name: 'reason_code' },
  team: { path: '/v1/teams/{id}', read: 'members:read', name: 'name' },
  user: { path: '/v1/users/{id}', read: 'members:read', name: 'name' },
  provider: { path: '/v1/catalog/providers/{id}', read: 'catalog:read', name: 'name' },
  mcp_server: { path: '/v1/catalog/mcp-servers/{id}', read: 'catalog:read', name: 'name' },
  gateway: { path: '/v1/gateways/{id}', read: 'catalog:read', name: 'name' },
  budget: { path: '/v1/budgets/{id}', read: 'catalog:read', name: 'name' },
  consumer_group: { path: '/v1/consumer-groups/{id}', read: 'catalog:read', name: 'name' },
  access_policy: { path: '/v1/access-policies/{id}', read: 'catalog:read', name: 'name' },
  dimension: { path: '/v1/attribution-dimensions/{id}', read: 'catalog:read', name: 'name' },
  application: { path: '/v1/oauth/clients/{id}', read: 'oauth-clients:read', name: 'client_name' },
} as const satisfies Readonly<Record<string, { path: string; read: Permission; name: string }>>

export type RecordKindName = keyof typeof kinds

const kindNames = z.enum(Object.keys(kinds).filter((name): name is RecordKindName => Object.hasOwn(kinds, name)))

const foundSchema = z.object({ kind: kindNames, id: z.string(), name: z.string().nullable() })

export interface RecordSearchOptions {
  /** Answers a request as the API does. */
  fetch(request: Request): Promise<Response>
}

export const recordSearchRoutes = ({ fetch }: RecordSearchOptions) =>
  new Elysia({ name: 'record-search' }).use(conventions).get(
    '/v1/records/:id',
    async ({ request, principal, params: { id } }) => {
      const asked = kindNames.options.filter((kind) => principal.permissions.has(kinds[kind].read))
      const found = await Promise.all(asked.map((kind) => recordOf(fetch, request, kind, id)))
      return { records: found.filter((record) => record !== null) }
    },
    {
      access: 'signed-in',
      params: idParams,
      response: z.object({ records: z.array(foundSchema) }),
      detail: { tags: ['Configuration'], summary: 'Says which record has an id; none where the caller sees none' },
    },
  )

/** The record of one kind; null where there is none, or the caller does not see it. */
async function recordOf(
  fetch: RecordSearchOptions['fetch'],
  asked: Request,
  kind: RecordKindName,
  id: string,
): Promise<z.infer<typeof foundSchema> | null> {
  const { path, name } = kinds[kind]
  const headers = new Headers()
  for (const header of ['authorization', 'cookie']) {
    const value = asked.headers.get(header)
    if (value !== null) headers.set(header, value)
  }
  const url = new URL(path.replace('{id}', encodeURIComponent(id)), asked.url)
  const answer = await fetch(new Request(url.href, { headers }))
  if (!answer.ok) return null
  const record = z.record(z.string(), z.unknown()).parse(await answer.json())
  const called = record[name]
  return { kind, id, name: typeof called === 'string' ? called : null }
}
