import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { eventRoutes } from '../../events/routes.ts'
import { openTestDatabases, type TestDatabases, testEventDependencies } from '../../events/testing/ledger.ts'
import { systemClock } from '../../lib/clock.ts'
import { version } from '../../version.ts'
import { conventions, openApiPath } from '../conventions.ts'
import { testApplication } from '../testing/application.ts'
import { type OpenApiDocument, openApiDocument } from './document.ts'
import type { GatewayRouteDescription } from './gateway-routes.ts'
import type { DescribedRoute } from './operation.ts'

const thingSchema = z.object({ id: z.uuid(), parts: z.array(z.string()) }).meta({ id: 'Thing' })

const things = new Elysia({ name: 'things' })
  .use(conventions)
  .post('/v1/things/:id/copy', ({ status }) => status(201, { id: '', parts: [] }), {
    access: 'tokens:write',
    params: z.object({ id: z.uuid() }),
    body: z.strictObject({ name: z.string().optional(), count: z.coerce.number().int().default(1) }),
    response: { 201: thingSchema },
    detail: { tags: ['Things'], summary: 'Copies a thing' },
  })
  .get('/v1/things', () => ({ things: [] }), {
    access: 'public',
    response: z.object({ things: z.array(thingSchema) }),
    detail: { tags: ['Things'], summary: 'Lists things' },
  })
  .post('/v1/hidden', () => ({}), { access: 'runtime:session', internal: true, response: z.object({}) })

const gatewayRoutes: GatewayRouteDescription[] = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    family: 'chat completions',
    summary: 'A chat completion',
    permission: 'gateway:invoke',
    policyStages: ['pre_request', 'post_request', 'pre_response'],
    request: z.looseObject({ model: z.string(), messages: z.array(z.looseObject({ role: z.string() })) }),
    reply: z.looseObject({ id: z.string() }),
    alsoAnswers: ['text/event-stream'],
  },
  {
    method: 'GET',
    path: '/v1/models/{model_id}',
    family: 'models',
    summary: 'One model',
    permission: 'gateway:invoke',
    policyStages: [],
    reply: z.looseObject({ id: z.string() }),
  },
]

let routes: readonly DescribedRoute[]
let document: OpenApiDocument
let text: string

beforeAll(async () => {
  const databases: TestDatabases = await openTestDatabases()
  routes = testApplication({ features: [things, eventRoutes(testEventDependencies(databases, systemClock))] }).routes
  document = openApiDocument({
    routes,
    gatewayRoutes,
    baseUrl: 'https://control.example.com',
    gatewayUrl: 'https://gateway.example.com',
  })
  databases.remove()
  text = JSON.stringify(document)
})

describe('the document', () => {
  test('is a valid description by the OpenAPI 3.1 schema', async () => {
    const validator = new Validator()
    const result = await validator.validate(JSON.parse(text))
    expect(result.errors).toBeUndefined()
    expect(result.valid).toBe(true)
    expect(validator.version).toBe('3.1')
  })

  test('has no error by the specification-level rules of redocly', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-document-'))
    const file = join(directory, 'openapi.json')
    await Bun.write(file, text)
    const command = ['node_modules/.bin/redocly', 'lint', '--extends=spec', '--format=json', file]
    const environment = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const lint = Bun.spawnSync(command, { env: environment })
    rmSync(directory, { recursive: true })
    expect(JSON.parse(lint.stdout.toString()).totals).toMatchObject({ errors: 0 })
  }, 30_000)

  test('describes every public route and no other', () => {
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const served = [...routes.filter(({ hooks }) => !hooks.internal), ...gatewayRoutes]
    const expected = served.map(({ method, path }) => `${method} ${openApiPath(path)}`)
    expect(described.toSorted()).toEqual(expected.toSorted())
  })

  test('names the required permission of each operation', () => {
    expect(document).toMatchObject({
      info: { version },
      paths: {
        '/v1/things/{id}/copy': { post: { 'x-permission': 'tokens:write', operationId: 'postThingsByIdCopy' } },
        '/v1/things': { get: { 'x-permission': null, security: [] } },
        '/v1/events': { get: { 'x-permission': 'events:read' } },
      },
    })
  })

  test('shows gateway routes with servers of their own and the stages they support', () => {
    expect(document).toMatchObject({
      servers: [{ url: 'https://control.example.com' }],
      paths: {
        '/v1/chat/completions': {
          post: {
            servers: [{ url: 'https://gateway.example.com' }],
            'x-permission': 'gateway:invoke',
            'x-policy-stages': ['pre_request', 'post_request', 'pre_response'],
            responses: { 200: { content: { 'application/json': {}, 'text/event-stream': {} } } },
          },
        },
        '/v1/models/{model_id}': {
          get: {
            parameters: [
              { name: 'model_id', in: 'path', required: true },
              { name: 'x-request-id', in: 'header' },
            ],
          },
        },
      },
    })
  })

  test("leaves out routes between Gatehouse's own processes", () => {
    expect(text).not.toContain('/v1/hidden')
  })

  test('shares schemas that have an id, and the error envelope', () => {
    expect(document).toMatchObject({
      paths: {
        '/v1/things/{id}/copy': {
          post: {
            responses: {
              201: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
              422: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
            },
          },
        },
      },
      components: { schemas: { Thing: { type: 'object' }, Error: { type: 'object' } } },
    })
    expect(text).not.toContain('$defs')
  })

  test('forbids unknown members in requests and allows them in answers', () => {
    const schemas = JSON.stringify(document).match(/"additionalProperties":false/g)
    expect(schemas).toHaveLength(2)
  })

  test('requires the members of a request that have no default', () => {
    expect(document).toMatchObject({
      paths: { '/v1/things/{id}/copy': { post: { requestBody: { required: false } } } },
    })
    expect(text).not.toContain('"required":["count"]')
  })
})
