/**
 * `GET /v1/records/{id}`: which record has this id, of those that the caller may read. The routes of each kind are asked
 * as the caller would ask them, so that each decides by itself what the caller sees.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import type { Permission } from '../../identity/permissions.ts'
import { conventions } from '../conventions.ts'
import { idParams } from '../resource.ts'
import { type Answers, callAs, refusalOf } from './call-as.ts'
import { recordLists } from './record-paths.ts'

/** Every kind that is found: the permission to read its records, and the member that holds what one is called. */
const kinds = {
  token: { read: 'tokens:read', name: 'name' },
  policy: { read: 'policies:read', name: 'name' },
  escalation: { read: 'escalations:read', name: 'reason_code' },
  team: { read: 'members:read', name: 'name' },
  user: { read: 'members:read', name: 'name' },
  provider: { read: 'catalog:read', name: 'name' },
  mcp_server: { read: 'catalog:read', name: 'name' },
  gateway: { read: 'catalog:read', name: 'name' },
  budget: { read: 'catalog:read', name: 'name' },
  consumer_group: { read: 'catalog:read', name: 'name' },
  access_policy: { read: 'catalog:read', name: 'name' },
  dimension: { read: 'catalog:read', name: 'name' },
  application: { read: 'oauth-clients:read', name: 'client_name' },
} as const satisfies Partial<Record<keyof typeof recordLists, { read: Permission; name: string }>>

export type RecordKindName = keyof typeof kinds

const kindNames = z.enum(Object.keys(kinds).filter((name): name is RecordKindName => Object.hasOwn(kinds, name)))

const foundSchema = z.object({ kind: kindNames, id: z.string(), name: z.string().nullable() })

export interface RecordSearchOptions {
  fetch: Answers
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

/** The record of one kind; null where there is none, or the caller does not see it. Throws any other refusal. */
async function recordOf(
  fetch: Answers,
  asked: Request,
  kind: RecordKindName,
  id: string,
): Promise<z.infer<typeof foundSchema> | null> {
  const answer = await callAs(fetch, asked, { method: 'GET', path: `${recordLists[kind]}/${id}` })
  if (answer.status === 403 || answer.status === 404) return null
  if (!answer.ok) throw await refusalOf(answer, (param) => param)
  const record = z.record(z.string(), z.unknown()).parse(await answer.json())
  const called = record[kinds[kind].name]
  return { kind, id, name: typeof called === 'string' ? called : null }
}
