/**
 * The API's own description, from which forms are made: what a route takes is what its form asks for, so that a field
 * the API gains is a field here too. Read once, when a form first needs it.
 */
import { request } from './request.ts'

/** The part of JSON Schema (2020-12) that bodies of this API use. */
export interface JsonSchema {
  type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'
  description?: string
  default?: unknown
  const?: unknown
  enum?: unknown[]
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  anyOf?: readonly JsonSchema[]
  oneOf?: readonly JsonSchema[]
  allOf?: readonly JsonSchema[]
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  maxLength?: number
  pattern?: string
  format?: string
  $ref?: string
  /** The field names records of another kind. */
  'x-record'?: RecordList
  /** The same; the value of the member beside it says of which kind. */
  'x-record-of'?: { member: string; kinds: Readonly<Record<string, RecordList>> }
  /** Which value of the member beside it the field counts for. */
  'x-only-where'?: { member: string; value: string }
}

/** Where records are listed, and by which of their members a field names them. */
export interface RecordList {
  path: string
  by: 'id' | 'name'
}

/**
 * Which records a field names; undefined where it names none. `beside` are the values of the object that has the field.
 * Null: what is chosen beside it leaves nothing to name.
 */
export function recordsNamedBy(
  schema: JsonSchema,
  beside: Readonly<Record<string, unknown>>,
): RecordList | null | undefined {
  for (const part of [schema, ...(schema.anyOf ?? []), schema.items ?? {}]) {
    if (part['x-record'] !== undefined) return part['x-record']
    const byKind = part['x-record-of']
    if (byKind !== undefined) return byKind.kinds[String(beside[byKind.member])] ?? null
  }
  return undefined
}

interface Operation {
  requestBody?: { content: Readonly<Record<string, { schema: JsonSchema }>> }
}

interface Description {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: { schemas: Readonly<Record<string, JsonSchema>> }
}

let read: Promise<Description> | null = null

export function description(): Promise<Description> {
  read ??= request<Description>('GET', '/v1/openapi.json').catch((error: unknown) => {
    read = null
    throw error
  })
  return read
}

/**
 * What the body of a route may hold: `POST /v1/policies`. Shared parts are put in where they are pointed at; one within
 * itself stands for anything, which a form asks for as JSON.
 */
export async function bodySchema(route: string): Promise<JsonSchema> {
  const [method = '', path = ''] = route.split(' ')
  const { paths, components } = await description()
  const schema = paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema
  if (schema === undefined) throw new Error(`The description has no body for ${route}`)
  return resolved(schema, components.schemas, [])
}

function resolved(
  schema: JsonSchema,
  shared: Readonly<Record<string, JsonSchema>>,
  within: readonly string[],
): JsonSchema {
  if (schema.$ref !== undefined) {
    const { $ref, ...rest } = schema
    const found = shared[$ref.replace('#/components/schemas/', '')]
    if (found === undefined || within.includes($ref)) return rest
    return { ...resolved(found, shared, [...within, $ref]), ...rest }
  }
  const inner = (part: JsonSchema) => resolved(part, shared, within)
  const { properties, items, anyOf, oneOf, additionalProperties } = schema
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, inner(part)])),
    }),
    ...(items && { items: inner(items) }),
    ...(anyOf && { anyOf: anyOf.map(inner) }),
    ...(oneOf && { oneOf: oneOf.map(inner) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: inner(additionalProperties) }),
  }
}
