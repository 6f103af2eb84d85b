import { expect, test } from 'bun:test'
import { z } from 'zod'
import { anonymous, type Principal } from '../identity/principal.ts'
import { requireVersion } from './entity-tag.ts'
import { operationOf } from './openapi/operation.ts'
import { idParams, resource } from './resource.ts'
import { resourceRoutes } from './resource-routes.ts'
import { testApplication } from './testing/application.ts'

const id = '0198c8a2-5b1e-7c3a-9f00-123456789abc'
const lamp = { id, name: 'first', version: 3 }

const kept = {
  name: 'lamp',
  one: 'lamp',
  plural: 'lamps',
  path: '/v1/lamps',
  tag: 'Lamps',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Manage lamps',
  record: z.object({ id: z.string(), name: z.string(), version: z.number().int() }),
  create: z.strictObject({ name: z.string() }),
  update: z.strictObject({ name: z.string().optional() }),
  filters: z.strictObject({ room: z.string().optional() }),
  columns: ['id', 'name'],
} as const
const summaries = { list: 'List lamps', get: 'Show one lamp', create: 'Add a lamp', update: 'Change a lamp' }
const notes = { update: 'null takes its name away' }
const lampKind = resource({ ...kept, summaries: { ...summaries, delete: 'Delete a lamp' }, notes })
const keptKind = resource({ ...kept, summaries })

const handlers = {
  list: async ({ room = 'any', limit }: { room?: string | undefined; limit: number }) => ({
    records: [{ ...lamp, name: `${room} ${limit}` }],
    next_cursor: null,
  }),
  get: async () => lamp,
  create: async ({ name }: { name: string }) => ({ ...lamp, name, version: 1 }),
  async update(_: string, { name = lamp.name }: { name?: string | undefined }, { headers }: { headers: Headers }) {
    requireVersion(headers, lamp.version)
    return { ...lamp, name, version: 4 }
  },
}
const remove = async (removed: string) => ({ ...lamp, name: `the last of ${removed}` })

const principals: Record<string, Principal> = {
  reader: { ...anonymous, kind: 'token', name: 'token:1', permissions: new Set(['catalog:read']) },
  writer: { ...anonymous, kind: 'token', name: 'token:2', permissions: new Set(['catalog:read', 'catalog:write']) },
}
const applicationOf = (feature: ReturnType<typeof resourceRoutes>) =>
  testApplication({
    features: [feature],
    authenticate: async ({ headers }) => principals[headers.get('authorization') ?? ''] ?? anonymous,
  })
const application = applicationOf(resourceRoutes(lampKind, { ...handlers, remove }))
const withoutDelete = applicationOf(resourceRoutes(keptKind, handlers))

async function call(method: string, path: string, { who = 'writer', body = '', ifMatch = '*', on = application } = {}) {
  const headers = { authorization: who, 'content-type': 'application/json', 'if-match': ifMatch }
  const url = `http://localhost:7070${path}`
  const answer = await on.fetch(new Request(url, { method, headers, body: body === '' ? null : body }))
  return { status: answer.status, etag: answer.headers.get('etag'), body: await answer.json() }
}

test('answers the five calls with the records of the handlers', async () => {
  const page = { lamps: [{ ...lamp, name: 'hall 7' }], next_cursor: null }
  expect(await call('GET', '/v1/lamps?room=hall&limit=7')).toEqual({ status: 200, etag: null, body: page })
  expect(await call('GET', `/v1/lamps/${id}`)).toEqual({ status: 200, etag: '"3"', body: lamp })
  const made = { ...lamp, name: 'new', version: 1 }
  expect(await call('POST', '/v1/lamps', { body: '{"name":"new"}' })).toEqual({ status: 201, etag: '"1"', body: made })
  const changed = { ...lamp, name: 'other', version: 4 }
  const answer = await call('PATCH', `/v1/lamps/${id}`, { body: '{"name":"other"}' })
  expect(answer).toEqual({ status: 200, etag: '"4"', body: changed })
  const last = { ...lamp, name: `the last of ${id}` }
  expect(await call('DELETE', `/v1/lamps/${id}`)).toEqual({ status: 200, etag: null, body: last })
})

test('refuses what the description does not allow', async () => {
  const statuses = await Promise.all([
    call('GET', '/v1/lamps?colour=red'),
    call('GET', '/v1/lamps/1'),
    call('POST', '/v1/lamps', { body: '{"colour":"red"}' }),
    call('POST', '/v1/lamps', { body: '{"name":"new"}', who: 'reader' }),
    call('PATCH', `/v1/lamps/${id}`, { body: '{}', ifMatch: '"2"' }),
    call('DELETE', `/v1/lamps/${id}`, { who: 'reader' }),
  ])
  expect(statuses.map(({ status }) => status)).toEqual([422, 404, 422, 403, 412, 403])
})

test('has no route to delete a record of a kind that is never deleted', async () => {
  expect((await call('DELETE', `/v1/lamps/${id}`, { on: withoutDelete })).status).toBe(405)
})

test('takes tag, summary and notes from the description', () => {
  const described = application.routes
    .filter(({ path }) => path.startsWith('/v1/lamps'))
    .map((route) => [route.method, operationOf(route, {})] as const)
  expect(described.map(([method, { tags, summary }]) => [method, tags, summary])).toEqual([
    ['GET', ['Lamps'], 'List lamps'],
    ['POST', ['Lamps'], 'Add a lamp'],
    ['GET', ['Lamps'], 'Show one lamp'],
    ['PATCH', ['Lamps'], 'Change a lamp; null takes its name away'],
    ['DELETE', ['Lamps'], 'Delete a lamp; gives its last record'],
  ])
})
