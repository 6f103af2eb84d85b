/**
 * `/scim/v2`: SCIM 2.0 (RFC 7644). The routes are public to the conventions of this API and check their own token, read
 * their own bodies (`application/scim+json` or JSON) and answer in SCIM's own form, errors too.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { parseJsonObject, readBytes, requireContentType } from '../../api/body.ts'
import { conventions } from '../../api/conventions.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { type ScimCall, scimCall } from './scim-caller.ts'
import { mostOnPage, oneOf, resourceTypes, schemas, serviceProviderConfig } from './scim-discovery.ts'
import {
  groupResource,
  groupShape,
  readGroup,
  readUser,
  type StoredGroup,
  type StoredUser,
  userDocumentOf,
  userResource,
  userShape,
} from './scim-documents.ts'
import { invalidValue, scimErrorAnswer, scimJson } from './scim-error.ts'
import { parseFilter } from './scim-filter.ts'
import { createGroup, deleteGroup, replaceGroup, requireGroup } from './scim-groups.ts'
import { type Document, patched } from './scim-patch.ts'
import { again, createUser, deleteUser, replaceUser, requireUser } from './scim-users.ts'
import { groupsOfUsers, listScimGroups, listScimUsers, membersOfGroups, type Page } from './stored-scim.ts'

/** Of a request: a group of 10,000 members fits. */
const bodyLimitBytes = 2 * 1024 * 1024

interface Answer {
  status: number
  body: Document | null
}
/** `id` is empty where the path has none; `body` reads the request's. */
type Handler = (call: ScimCall, asked: { id: string; url: URL; body: () => Promise<object> }) => Promise<Answer>

const ok = (body: Document, status = 200): Answer => ({ status, body })

export const scimRoutes = (dependencies: MemberDependencies) => {
  const answer = async (request: Request, requestId: string, id: string, handler: Handler): Promise<Response> => {
    try {
      const call = await scimCall(dependencies, request, requestId)
      const url = new URL(request.url)
      const { status, body } = await handler(call, { id, url, body: () => readBody(request) })
      if (body === null) return new Response(null, { status })
      const { location } = z.looseObject({ location: z.string().optional() }).parse(body.meta ?? {})
      return scimJson(status, body, location === undefined ? {} : { location })
    } catch (error) {
      return scimErrorAnswer(error)
    }
  }
  const described = (summary: string) => ({
    access: 'public' as const,
    internal: true as const,
    detail: { tags: ['SCIM'], summary },
  })
  const params = z.object({ id: z.string() })
  const app = new Elysia({ name: 'scim' }).use(conventions)
  for (const [method, path, summary, handler] of routes) {
    if (path.endsWith('/:id')) {
      app.route(
        method,
        `/scim/v2${path}`,
        ({ request, requestId, params: { id } }) => answer(request, requestId, id, handler),
        { ...described(summary), params },
      )
    } else {
      app.route(
        method,
        `/scim/v2${path}`,
        ({ request, requestId }) => answer(request, requestId, '', handler),
        described(summary),
      )
    }
  }
  return app
}

const routes: readonly [method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', string, string, Handler][] = [
  ['GET', '/ServiceProviderConfig', 'Shows what SCIM can do here', async ({ base }) => ok(serviceProviderConfig(base))],
  ['GET', '/ResourceTypes', 'Lists the kinds of resources', async ({ base }) => ok(listOf(resourceTypes(base)))],
  [
    'GET',
    '/ResourceTypes/:id',
    'Shows a kind of resource',
    async ({ base }, { id }) => ok(oneOf(resourceTypes(base), id, 'resource type')),
  ],
  ['GET', '/Schemas', 'Lists the schemas', async ({ base }) => ok(listOf(schemas(base)))],
  ['GET', '/Schemas/:id', 'Shows a schema', async ({ base }, { id }) => ok(oneOf(schemas(base), id, 'schema'))],
  ['GET', '/Users', 'Lists the people of the provider', (call, { url }) => listUsers(call, url)],
  [
    'POST',
    '/Users',
    'Makes a person',
    async (call, { url, body }) => {
      const document = readUser(await body())
      return ok(await showUser(call, url, await again(() => createUser(call, document))), 201)
    },
  ],
  ['GET', '/Users/:id', 'Shows a person', async (call, { id, url }) => ok(await showUser(call, url, id))],
  [
    'PUT',
    '/Users/:id',
    'Replaces a person',
    async (call, { id, url, body }) => {
      const document = readUser(await body())
      await again(async () => replaceUser(call, await requireUser(call, id), document))
      return ok(await showUser(call, url, id))
    },
  ],
  [
    'PATCH',
    '/Users/:id',
    'Changes a person',
    async (call, { id, url, body }) => {
      const sent = await body()
      await again(async () => {
        const before = await requireUser(call, id)
        await replaceUser(call, before, readUser(patched(userDocumentOf(before), sent, userShape)))
      })
      return ok(await showUser(call, url, id))
    },
  ],
  [
    'DELETE',
    '/Users/:id',
    'Ends the access of a person',
    async (call, { id }) => {
      await again(async () => deleteUser(call, await requireUser(call, id)))
      return { status: 204, body: null }
    },
  ],
  ['GET', '/Groups', 'Lists the groups of the provider', (call, { url }) => listGroups(call, url)],
  [
    'POST',
    '/Groups',
    'Makes a group',
    async (call, { url, body }) => {
      const document = readGroup(await body())
      return ok(await showGroup(call, url, await again(() => createGroup(call, document))), 201)
    },
  ],
  ['GET', '/Groups/:id', 'Shows a group', async (call, { id, url }) => ok(await showGroup(call, url, id))],
  [
    'PUT',
    '/Groups/:id',
    'Replaces a group',
    async (call, { id, url, body }) => {
      // What a PUT leaves out is unassigned (RFC 7644 section 3.5.1).
      const document = readGroup(await body())
      const whole = { ...document, members: document.members ?? [] }
      await again(async () => replaceGroup(call, await requireGroup(call, id), whole))
      return ok(await showGroup(call, url, id))
    },
  ],
  [
    'PATCH',
    '/Groups/:id',
    'Changes a group',
    async (call, { id, url, body }) => {
      const sent = await body()
      await again(async () => {
        const before = await requireGroup(call, id)
        await replaceGroup(call, before, readGroup(patched(await groupDocumentOf(call, before), sent, groupShape)))
      })
      return ok(await showGroup(call, url, id))
    },
  ],
  [
    'DELETE',
    '/Groups/:id',
    'Deletes a group',
    async (call, { id }) => {
      await again(async () => deleteGroup(call, await requireGroup(call, id)))
      return { status: 204, body: null }
    },
  ],
]

async function readBody(request: Request): Promise<object> {
  const isJson = /^\s*application\/json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')
  requireContentType(request, isJson ? 'application/json' : 'application/scim+json')
  return parseJsonObject(await readBytes(request, bodyLimitBytes))
}

const listOf = (resources: readonly Document[], { total = resources.length, startIndex = 1 } = {}): Document => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
  totalResults: total,
  startIndex,
  itemsPerPage: resources.length,
  Resources: resources,
})

/** RFC 7644 section 3.4.2.4: an index below 1 is 1, a count below 0 is 0. */
function pageOf(url: URL): Page & { startIndex: number } {
  const number = (name: string, otherwise: number) => {
    const text = url.searchParams.get(name)
    if (text === null) return otherwise
    if (!/^-?\d{1,9}$/.test(text)) throw invalidValue(`${name}: write a whole number`)
    return Number(text)
  }
  const startIndex = Math.max(1, number('startIndex', 1))
  const limit = Math.min(mostOnPage, Math.max(0, number('count', 100)))
  const filter = url.searchParams.get('filter')
  return { filter: filter === null ? [] : parseFilter(filter), offset: startIndex - 1, limit, startIndex }
}

/** `attributes` and `excludedAttributes` (RFC 7644 section 3.9), by whole attributes; schemas and id are always shown. */
function choiceOf(url: URL): (name: string) => boolean {
  const namesIn = (parameter: string) => {
    const text = url.searchParams.get(parameter)
    const names = text?.split(',').map(
      (name) =>
        name
          .trim()
          .toLowerCase()
          .replace(/^urn:.*:(?=\w)/, '')
          .split('.')[0],
    )
    return names === undefined ? null : new Set(names)
  }
  const [only, without] = [namesIn('attributes'), namesIn('excludedAttributes')]
  return (name) => {
    const asked = name.toLowerCase()
    return ['schemas', 'id'].includes(asked) || (only === null ? without?.has(asked) !== true : only.has(asked))
  }
}

const chosen = (resource: Document, shows: (name: string) => boolean): Document =>
  Object.fromEntries(Object.entries(resource).filter(([name]) => shows(name)))

async function usersShown({ dependencies, provider, base }: ScimCall, url: URL, rows: readonly StoredUser[]) {
  const shows = choiceOf(url)
  const ids = shows('groups') ? rows.map(({ userId }) => userId) : []
  const groups = await groupsOfUsers(dependencies.ledger, provider.issuer, ids)
  return rows.map((row) => chosen(userResource(row, groups(row.userId), base), shows))
}

async function listUsers(call: ScimCall, url: URL): Promise<Answer> {
  const page = pageOf(url)
  const { rows, total } = await listScimUsers(call.dependencies.ledger, call.provider.issuer, page)
  return ok(listOf(await usersShown(call, url, rows), { total, startIndex: page.startIndex }))
}

async function showUser(call: ScimCall, url: URL, id: string): Promise<Document> {
  const [shown] = await usersShown(call, url, [await requireUser(call, id)])
  return shown ?? {}
}

async function groupsShown({ dependencies, provider, base }: ScimCall, url: URL, rows: readonly StoredGroup[]) {
  const shows = choiceOf(url)
  const ids = shows('members') ? rows.map(({ teamId }) => teamId) : []
  const members = await membersOfGroups(dependencies.ledger, provider.issuer, ids)
  return rows.map((row) => chosen(groupResource(row, members(row.teamId), base), shows))
}

async function listGroups(call: ScimCall, url: URL): Promise<Answer> {
  const page = pageOf(url)
  const { rows, total } = await listScimGroups(call.dependencies.ledger, call.provider.issuer, page)
  return ok(listOf(await groupsShown(call, url, rows), { total, startIndex: page.startIndex }))
}

async function showGroup(call: ScimCall, url: URL, id: string): Promise<Document> {
  const [shown] = await groupsShown(call, url, [await requireGroup(call, id)])
  return shown ?? {}
}

async function groupDocumentOf({ dependencies, provider }: ScimCall, row: StoredGroup): Promise<Document> {
  const members = await membersOfGroups(dependencies.ledger, provider.issuer, [row.teamId])
  const { displayName, externalId, teamId } = row
  return {
    ...(externalId === null ? {} : { externalId }),
    displayName,
    members: members(teamId).map(({ id }) => ({ value: id })),
  }
}
