/**
 * Google's Schema (a subset of OpenAPI 3.0) as JSON Schema: types in lower case, `nullable` as a type, counts as
 * numbers. What is JSON Schema already stays.
 */
import { isObject, type JsonObject } from '../../reading/json-value.ts'

/** Members that hold one schema, a list of them, and schemas by the caller's names. */
const single: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not'])
const listed: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'patternProperties'])
/** ProtoJSON writes 64-bit counts as strings. */
const counts: ReadonlySet<string> = new Set([
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'],
])
const otherNames: ReadonlyMap<string, string> = new Map(
  ['anyOf', 'minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties', 'propertyOrdering'].map(
    (name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name],
  ),
)
/** They order or illustrate, and JSON Schema has no such member. */
const dropped: ReadonlySet<string> = new Set(['propertyOrdering', 'nullable', 'example'])

export function jsonSchemaOf(schema: Readonly<JsonObject>): JsonObject {
  const result: JsonObject = {}
  for (const [given, value] of Object.entries(schema)) {
    const name = otherNames.get(given) ?? given
    if (!dropped.has(name)) result[name] = memberOf(name, value)
  }
  if (schema.nullable !== true) return result
  if (typeof result.type === 'string') return { ...result, type: [result.type, 'null'] }
  return Array.isArray(result.anyOf) ? { ...result, anyOf: [...result.anyOf, { type: 'null' }] } : result
}

function memberOf(name: string, value: unknown): unknown {
  if (name === 'type') return typeof value === 'string' ? value.toLowerCase() : value
  if (counts.has(name) && typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  if (single.has(name)) return isObject(value) ? jsonSchemaOf(value) : value
  if (listed.has(name) && Array.isArray(value)) return value.map(schemaIn)
  if (!named.has(name) || !isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([property, inner]) => [property, schemaIn(inner)]))
}

const schemaIn = (value: unknown): unknown => (isObject(value) ? jsonSchemaOf(value) : value)
