/** The parts that operations of both listeners are made of: parameters, bodies, answers, failures. */
import { z } from 'zod'
import { isObject, type JsonObject, schemaOf } from './schema.ts'

/** `POST /v1/tokens/{id}/rotate` → `postTokensByIdRotate`. */
export function operationId(method: string, path: string): string {
  const words = path
    .replace(/^\/v1\//, '')
    .replaceAll(/\{(\w+)\}/g, 'by-$1')
    .split(/[^A-Za-z0-9]+/)
  const capitalised = words.filter(Boolean).map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return method.toLowerCase() + capitalised.join('')
}

const text = { type: 'string' } as const

const headerParameter = (name: string, description: string, schema: JsonObject = text): JsonObject => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
})

export const requestHeaders = {
  requestId: headerParameter('x-request-id', 'The id of the request; a new one is made where it is left out', {
    ...text,
    pattern: '^[A-Za-z0-9._:-]{1,128}$',
  }),
  sessionId: headerParameter('x-session-id', 'Groups requests of one session; its member form is session_id', {
    ...text,
    maxLength: 256,
  }),
  ifMatch: headerParameter('If-Match', 'Makes the change only while the record has this version'),
  idempotencyKey: headerParameter('Idempotency-Key', 'A repeat with the same key gets the first answer for 24 hours', {
    ...text,
    minLength: 1,
    maxLength: 255,
  }),
}

const header = (description: string, schema: JsonObject = text): JsonObject => ({ description, schema })

export const answerHeaders = {
  requestId: { 'x-request-id': header('The id of the request') },
  entityTag: { ETag: header('The version of the record') },
  retryAfter: { 'Retry-After': header('Seconds to wait before the request is sent again', { type: 'integer' }) },
  shouldRetry: {
    'x-should-retry': header('`false` where a repeat would fail again', { ...text, enum: ['true', 'false'] }),
  },
  verdict: { 'x-service-verdict': header('The verdict of the policies on this request') },
  replayed: { 'idempotency-replayed': header('`true` where this is the kept answer of an earlier request') },
}

export function parametersOf(
  place: 'path' | 'query',
  schema: z.ZodType | undefined,
  schemas: JsonObject,
): JsonObject[] {
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

export function requestBodyOf(body: z.ZodType | undefined, type: string, schemas: JsonObject): JsonObject {
  if (body === undefined) return {}
  const schema = schemaOf(body, 'input', schemas)
  return { requestBody: { required: !body.safeParse({}).success, content: { [type]: { schema } } } }
}

/** The content of an answer: JSON by its schema, and the other content types that the route answers in. */
export function contentOf(reply: z.ZodType | undefined, others: readonly string[], schemas: JsonObject): JsonObject {
  const content: JsonObject = reply ? { 'application/json': { schema: schemaOf(reply, 'output', schemas) } } : {}
  for (const type of others) content[type] = { schema: { type: 'string' } }
  return content
}

export const answer = (description: string, content: JsonObject, headers: JsonObject = {}): JsonObject => ({
  description,
  headers: { ...answerHeaders.requestId, ...headers },
  ...(Object.keys(content).length > 0 ? { content } : {}),
})

export const errorMembers = {
  message: z.string().describe('For people; its wording may change'),
  code: z.string().describe('Stable; branch on this and on type'),
}

export const errorSchema = z.object({
  error: z.looseObject({
    ...errorMembers,
    type: z.string(),
    param: z.string().nullable().describe('The field at fault'),
  }),
  request_id: z.string(),
})

const failureNames: Readonly<Record<number, string>> = {
  400: 'The request could not be understood, or a policy blocked it',
  401: 'No credential, or not a valid one',
  402: 'A budget cannot pay for it',
  403: 'The credential lacks a permission',
  404: 'There is no such record',
  405: 'The address is served for other methods; `Allow` names them',
  408: 'The body did not arrive in time',
  409: 'The state of the record, or another request, conflicts with it',
  410: 'The route is retired',
  412: 'The record has another version than `If-Match` names',
  413: 'The body is larger than the limit',
  415: 'The body is of another type, or encoded in an unknown way',
  422: 'A field is missing, unknown or wrong; `param` names it',
  426: 'Open the connection as a WebSocket',
  429: 'A limit of requests, attempts or tokens is reached',
  499: 'The caller left before its answer was complete',
  500: 'Something failed inside',
  502: 'The provider failed',
  503: 'A part that this needs does not answer; try again',
  504: 'The provider did not answer in time',
}

/** The failures of an operation by status, in the error schema of this name. */
export function failuresOf(statuses: Iterable<number>, errorName = 'Error', headers: JsonObject = {}): JsonObject {
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${errorName}` } } }
  const sorted = [...new Set(statuses)].sort((one, other) => one - other)
  return Object.fromEntries(
    sorted.map((status) => {
      const wait = status === 429 || status === 503 ? answerHeaders.retryAfter : {}
      const all = { ...answerHeaders.shouldRetry, ...wait, ...headers }
      return [status, answer(failureNames[status] ?? 'Refused', content, all)]
    }),
  )
}
