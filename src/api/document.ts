/**
 * `/v1/openapi.json` (OpenAPI 3.1), made from the same zod schemas that validate: what is sent by their input side, what
 * is answered by their output side. Gateway routes stand beside the control plane's with servers of their own; their
 * schemas describe and do not validate. A schema with an id in zod's registry becomes a shared component.
 */
import { z } from 'zod'
import { version } from '../version.ts'
import { refusingUnknown } from './body.ts'
import type { AnyRoute, GatewayRouteDescription } from './route.ts'

export interface DocumentOptions {
  routes: readonly AnyRoute[]
  gatewayRoutes: readonly GatewayRouteDescription[]
  baseUrl: string
  gatewayUrl: string
}

/** JSON as the document holds it. */
type Json = string | number | boolean | null | undefined | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

/** The parts that code looks at; the rest is as OpenAPI says. */
export type OpenApiDocument = JsonObject & { paths: { [path: string]: JsonObject } }

/** The whole document as a plain object. Throws where a schema cannot be shown. */
export function openApiDocument({ routes, gatewayRoutes, baseUrl, gatewayUrl }: DocumentOptions): OpenApiDocument {
  const shown = routes.filter((route) => !route.internal)
  const schemas: JsonObject = { Error: schemaOf(errorSchema, 'output', {}) }
  const paths: { [path: string]: JsonObject } = {}
  const add = (path: string, method: string, operation: JsonObject) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  for (const route of shown) add(route.path, route.method, operationOf(route, schemas))
  add('/v1/openapi.json', 'GET', descriptionOperation)
  for (const route of gatewayRoutes) {
    add(route.path, route.method, { ...gatewayOperationOf(route, schemas), servers: [{ url: gatewayUrl }] })
  }
  const tags = new Set([
    ...shown.map(({ tag }) => tag),
    'Description',
    ...(gatewayRoutes.length > 0 ? ['Gateway'] : []),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version,
      summary: 'A governing gateway for model traffic',
      description: 'The public API, version 1: the control plane, and the gateway with servers of its own.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    security: [{ bearer: [] }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API token, sent as Authorization: Bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: "The same, as Anthropic's clients do" },
      },
      schemas,
    },
  }
}

const errorSchema = z.object({
  error: z
    .object({
      message: z.string().describe('For people; its wording may change'),
      type: z.string(),
      param: z.string().nullable().describe('The field at fault'),
      code: z.string().describe('Stable; branch on this and on type'),
    })
    .loose(),
  request_id: z.string(),
})

const descriptionOperation: JsonObject = {
  operationId: 'getOpenapiJson',
  tags: ['Description'],
  summary: 'This document',
  'x-permission': null,
  security: [],
  responses: { '200': { description: 'OK', content: { 'application/json': { schema: { type: 'object' } } } } },
}

function operationOf(route: AnyRoute, schemas: JsonObject): JsonObject {
  const open = route.access === 'public'
  return {
    operationId: operationId(route.method, route.path),
    tags: [route.tag],
    summary: route.summary,
    'x-permission': open ? null : route.access,
    ...(open ? { security: [] } : {}),
    parameters: [
      ...parametersOf('path', route.params, schemas),
      ...parametersOf('query', route.query, schemas),
      ...(route.method === 'POST' && !open ? [idempotencyKey] : []),
    ],
    ...(route.form === undefined
      ? requestBodyOf(route.body && refusingUnknown(route.body), route.rawBody, schemas)
      : requestBodyOf(route.form.body, undefined, schemas, 'application/x-www-form-urlencoded')),
    responses: {
      [route.status ?? 200]: answer('OK', answerContent(route, schemas)),
      ...(route.form === undefined
        ? failures(open ? [422] : [401, 403, 422])
        : {
            400: answer('Refused', {
              'application/json': { schema: schemaOf(route.form.refusal, 'output', schemas) },
            }),
          }),
    },
  }
}

const gatewayFailures = [400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 502, 503]

function gatewayOperationOf(route: GatewayRouteDescription, schemas: JsonObject): JsonObject {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return {
    operationId: operationId(route.method, route.path),
    tags: ['Gateway'],
    summary: route.summary,
    'x-permission': route.permission,
    'x-family': route.family,
    'x-policy-stages': [...route.policyStages],
    ...(route.takesApiKey ? { security: [{ bearer: [] }, { apiKey: [] }] } : {}),
    parameters: names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...requestBodyOf(route.request, undefined, schemas, route.requestType),
    responses: { 200: answer('OK', answerContent(route, schemas)), ...failures(gatewayFailures) },
  }
}

/** `POST /v1/tokens/{id}/rotate` → `postTokensByIdRotate`. */
function operationId(method: string, path: string): string {
  const words = path
    .replace(/^\/v1\//, '')
    .replaceAll(/\{(\w+)\}/g, 'by-$1')
    .split(/[^A-Za-z0-9]+/)
  const capitalised = words.filter(Boolean).map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return method.toLowerCase() + capitalised.join('')
}

const idempotencyKey: JsonObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The first answer of a key is given again for 24 hours',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

function parametersOf(place: 'path' | 'query', schema: z.ZodType | undefined, schemas: JsonObject): JsonObject[] {
  if (schema === undefined) return []
  const { properties, required } = schemaOf(schema, 'input', schemas)
  const needed = Array.isArray(required) ? required : []
  return Object.entries(isObject(properties) ? properties : {}).map(([name, property]) => {
    const { description, ...rest } = isObject(property) ? property : {}
    return {
      name,
      in: place,
      required: place === 'path' || needed.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }
  })
}

function requestBodyOf(
  body: z.ZodType | undefined,
  rawBody: string | undefined,
  schemas: JsonObject,
  type = 'application/json',
): JsonObject {
  if (rawBody !== undefined) {
    return { requestBody: { required: true, content: { [rawBody]: { schema: { type: 'string' } } } } }
  }
  if (body === undefined) return {}
  const schema = schemaOf(body, 'input', schemas)
  return { requestBody: { required: !body.safeParse({}).success, content: { [type]: { schema } } } }
}

function answerContent(
  { reply, alsoAnswers = [] }: AnyRoute | GatewayRouteDescription,
  schemas: JsonObject,
): JsonObject {
  const content: JsonObject = reply ? { 'application/json': { schema: schemaOf(reply, 'output', schemas) } } : {}
  for (const type of alsoAnswers) content[type] = { schema: { type: 'string' } }
  return content
}

const answer = (description: string, content: JsonObject): JsonObject => ({
  description,
  headers: { 'x-request-id': { description: "The request's id", schema: { type: 'string' } } },
  content,
})

const failureNames: Record<number, string> = {
  400: 'The request is malformed: see /v1/openapi.json, or a policy blocked it',
  401: 'No credential, or not a valid one',
  402: 'A budget cannot pay for it',
  403: 'The credential lacks a permission',
  404: 'Nothing there',
  408: 'The body did not arrive in time',
  413: 'The body is larger than the limit',
  415: 'The body is of another type, or encoded in an unknown way',
  422: 'A field is missing, unknown or wrong; `param` names it',
  429: 'A limit of requests or tokens is reached',
  502: 'The provider failed',
  503: 'A part that this needs does not answer; try again',
}

function failures(statuses: readonly number[]): JsonObject {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  return Object.fromEntries(statuses.map((status) => [status, answer(failureNames[status] ?? 'Refused', content)]))
}

/** The JSON Schema (2020-12, which OpenAPI 3.1 takes as it is) of a zod schema; what it shares goes into `schemas`. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: JsonObject): JsonObject {
  const made: JsonObject = JSON.parse(
    JSON.stringify(
      z.toJSONSchema(schema, { io, target: 'draft-2020-12', override: io === 'output' ? leaveOpen : closed }),
    ),
  )
  const { $schema: _dialect, $defs, ...rest } = made
  for (const [name, definition] of Object.entries(isObject($defs) ? $defs : {})) schemas[name] = pointed(definition)
  const result = pointed(rest)
  return isObject(result) ? result : {}
}

const closed = () => undefined

/** What is answered may gain members within a version, so a description must not forbid them. */
function leaveOpen({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
}

/** Zod points at `#/$defs/Name`; in this document what is shared lies in `#/components/schemas/Name`. */
function pointed(value: Json): Json {
  if (Array.isArray(value)) return value.map(pointed)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === '$ref' && typeof member === 'string'
        ? [name, member.replace('#/$defs/', '#/components/schemas/')]
        : [name, pointed(member)],
    ),
  )
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
