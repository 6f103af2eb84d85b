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
import { invalidValue, scimErrorAnswer, scimJson } from './scim-error.ts'
import { parseFilter } from './scim-filter.ts'
import { groups, people, type ScimKind } from './scim-kinds.ts'
import { type Document, patched } from './scim-patch.ts'
import { again } from './scim-users.ts'
import type { Page } from './stored-scim.ts'

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
  const app = new Elysia({ name: 'scim' }).use(conventions)
  for (const [method, path, summary, handler] of routes) {
    const route = `/scim/v2${path}`
    // A schema of parameters refuses a path that has none.
    if (path.endsWith('/:id')) {
      const schema = { ...described(summary), params: z.object({ id: z.string() }) }
      app.route(
        method,
        route,
        ({ request, requestId, params }) => answer(request, requestId, params.id, handler),
        schema,
      )
    } else {
      app.route(method, route, ({ request, requestId }) => answer(request, requestId, '', handler), described(summary))
    }
  }
  return app
}

type Route = readonly [method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, summary: string, Handler]

/** The six routes of people or of groups (RFC 7644 section 3). */
function routesOf<Row, Sent>({ path, many, one, read, ...kind }: ScimKind<Row, Sent>): readonly Route[] {
  const shown = async (call: ScimCall, url: URL, id: string) => {
    const [resource] = await kind.shown(call, choiceOf(url), [await kind.find(call, id)])
    return resource ?? {}
  }
  const list: Handler = async (call, { url }) => {
    const page = pageOf(url)
    const { rows, total } = await kind.list(call.dependencies.ledger, call.provider.issuer, page)
    return ok(listOf(await kind.shown(call, choiceOf(url), rows), { total, startIndex: page.startIndex }))
  }
  const make: Handler = async (call, { url, body }) => {
    const sent = read(await body(), true)
    return ok(await shown(call, url, await again(() => kind.create(call, sent))), 201)
  }
  const replace: Handler = async (call, { id, url, body }) => {
    const sent = read(await body(), true)
    await again(async () => kind.replace(call, await kind.find(call, id), sent))
    return ok(await shown(call, url, id))
  }
  const change: Handler = async (call, { id, url, body }) => {
    const sent = await body()
    await again(async () => {
      const before = await kind.find(call, id)
      await kind.replace(call, before, read(patched(await kind.documentOf(call, before), sent, kind.shape), false))
    })
    return ok(await shown(call, url, id))
  }
  const end: Handler = async (call, { id }) => {
    await again(async () => kind.end(call, await kind.find(call, id)))
    return { status: 204, body: null }
  }
  return [
    ['GET', path, `Lists the ${many} of the provider`, list],
    ['POST', path, `Makes ${one}`, make],
    ['GET', `${path}/:id`, `Shows ${one}`, async (call, { id, url }) => ok(await shown(call, url, id))],
    ['PUT', `${path}/:id`, `Replaces ${one}`, replace],
    ['PATCH', `${path}/:id`, `Changes ${one}`, change],
    ['DELETE', `${path}/:id`, kind.ending, end],
  ]
}

const routes: readonly Route[] = [
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
  ...routesOf(people),
  ...routesOf(groups),
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
