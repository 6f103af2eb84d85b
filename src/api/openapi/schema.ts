/**
 * Zod schemas as JSON Schema (2020-12, which OpenAPI 3.1 takes as it is). A schema with an id becomes a shared
 * component.
 */
import { z } from 'zod'

/** JSON as the document holds it. */
export type Json = string | number | boolean | null | undefined | Json[] | { [name: string]: Json }
export type JsonObject = { [name: string]: Json }

/** The JSON Schema of a zod schema; what it shares goes into `schemas`. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: JsonObject): JsonObject {
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

/** Zod points at `#/$defs/Name`; this document keeps shared schemas in `#/components/schemas/Name`. */
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

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
