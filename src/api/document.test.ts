import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { z } from 'zod'
import { eventRoutes } from '../events/routes.ts'
import { openTestDatabases, type TestDatabases, testEventDependencies } from '../events/testing/ledger.ts'
import { systemClock } from '../lib/clock.ts'
import { version } from '../version.ts'
import { type OpenApiDocument, openApiDocument } from './document.ts'
import { type AnyRoute, type GatewayRouteDescription, route } from './route.ts'

const thingSchema = z.object({ id: z.uuid(), parts: z.array(z.string()) }).meta({ id: 'Thing' })

const routes: AnyRoute[] = [
  route({
    method: 'POST',
    path: '/v1/things/{id}/copy',
    tag: 'Things',
    summary: 'Copies a thing',
    access: 'tokens:write',
    params: z.object({ id: z.uuid() }),
    body: z.strictObject({ name: z.string().optional(), count: z.coerce.number().int().default(1) }),
    reply: thingSchema,
    status: 201,
    handle: () => ({ reply: { id: '', parts: [] } }),
  }),
  route({
    method: 'GET',
    path: '/v1/things',
    tag: 'Things',
    summary: 'Lists things',
    access: 'public',
    reply: z.object({ things: z.array(thingSchema) }),
    handle: () => ({ reply: { things: [] } }),
  }),
  route({
    method: 'POST',
    path: '/v1/hidden',
    tag: 'Things',
    summary: 'Between our own processes',
    access: 'runtime:session',
    reply: z.object({}),
    internal: true,
    handle: () => ({ reply: {} }),
  }),
]

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

let events: AnyRoute[]
let document: OpenApiDocument
let text: string

beforeAll(async () => {
  const databases: TestDatabases = await openTestDatabases()
  events = eventRoutes(testEventDependencies(databases, systemClock))
  document = openApiDocument({
    routes: [...routes, ...events],
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
    const served = [...routes.filter(({ internal }) => !internal), ...events, ...gatewayRoutes]
    const expected = [...served.map(({ method, path }) => `${method} ${path}`), 'GET /v1/openapi.json']
    expect(described.toSorted()).toEqual(expected.toSorted())
  })

  test('says for each operation which permission it needs', () => {
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
        '/v1/models/{model_id}': { get: { parameters: [{ name: 'model_id', in: 'path', required: true }] } },
      },
    })
  })

  test('leaves out what is between our own processes', () => {
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

  test('forbids unknown members in what is sent and none in what is answered', () => {
    const schemas = JSON.stringify(document).match(/"additionalProperties":false/g)
    expect(schemas).toHaveLength(2)
  })

  test('requires of a request what must be sent, not what has a default', () => {
    expect(document).toMatchObject({
      paths: { '/v1/things/{id}/copy': { post: { requestBody: { required: false } } } },
    })
    expect(text).not.toContain('"required":["count"]')
  })
})
