/**
 * The flags of a kind of record, made from its schemas, and the body of a request, read from them
 * (`src/api/resource.ts` says by which rules).
 */
import type { ArgDef, ArgsDef } from 'citty'
import { z } from 'zod'
import type { FlagOptions, Resource } from '../../src/api/resource.ts'
import { Failure } from '../../src/failure.ts'
import type { Input } from '../terminal/input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Api } from './api.ts'
import { idOf, type References } from './record-names.ts'
import {
  fromEnvironment,
  linesOf,
  pairsFromEnvironment,
  readAmount,
  readCount,
  readJson,
  readList,
  readNumber,
} from './values.ts'

/** As much of JSON Schema as fields use. */
interface JsonSchema {
  type?: string
  format?: string
  description?: string
  enum?: readonly unknown[]
  const?: unknown
  anyOf?: readonly JsonSchema[]
  items?: JsonSchema
  additionalProperties?: boolean | JsonSchema
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  default?: unknown
  minimum?: number
  exclusiveMinimum?: number
  'x-record'?: { path: string; by: 'id' | 'name' }
}

/** A field that has a flag. */
export interface Field {
  /** Its path in the body: `['timeouts', 'idle_seconds']`. */
  path: readonly string[]
  flag: string
  schema: JsonSchema
  options: FlagOptions
  /** Whether its parent object requires it. */
  required: boolean
}

/** The fields of an object in their order, those of objects within it among them. */
export function fieldsOf(schema: z.ZodType, flags: Resource['flags'] = {}): Field[] {
  // The subset of JSON Schema that zod produces for a field.
  return walk(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema, flags, [])
}

function walk(object: JsonSchema, flags: NonNullable<Resource['flags']>, parents: readonly string[]): Field[] {
  return Object.entries(object.properties ?? {}).flatMap(([name, given]) => {
    const path = [...parents, name]
    const options = flags[path.join('.')]
    const schema = withoutNull(given)
    if (options === null || schema.const !== undefined) return []
    if (schema.properties !== undefined && options?.json === undefined) return walk(schema, flags, path)
    const required = (object.required ?? []).includes(name)
    return [{ path, schema, options: options ?? {}, required, flag: flagOf(path, schema, options ?? {}) }]
  })
}

function withoutNull(schema: JsonSchema): JsonSchema {
  const [only, ...others] = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  if (only === undefined || others.length > 0) return schema
  return { ...only, ...(schema.description === undefined ? {} : { description: schema.description }) }
}

function flagOf(path: readonly string[], schema: JsonSchema, { name }: FlagOptions): string {
  const isMany = schema.type === 'array' || isSecretMap(schema)
  const written = name ?? path.map(kebab).join('-')
  const one = name === undefined && isMany ? singular(written) : written
  return isSecret(schema) || isSecretMap(schema) ? `${one}-env` : one
}

const isSecret = ({ format }: JsonSchema): boolean => format === 'password'
const isSecretMap = ({ additionalProperties: values }: JsonSchema): boolean =>
  typeof values === 'object' && isSecret(values)

const kebab = (name: string): string => name.replaceAll('_', '-')
const singular = (name: string): string => name.replace(/ies$/, 'y').replace(/s$/, '')

/** The fields that can be taken back to their default, as `--clear` names them. */
export const clearableOf = (update: z.ZodObject): string[] =>
  Object.entries(update.shape).flatMap(([name, field]) =>
    field instanceof z.ZodType && field.safeParse(null).success ? [kebab(name)] : [],
  )

/** The arguments for fields. `making`: fields that a new record needs are required. */
export function argumentsFor(fields: readonly Field[], making: boolean): ArgsDef {
  const entries = fields.map((field) => [field.flag, argumentFor(field, making)] as const)
  const piped = fields
    .filter(({ schema }) => isSecret(schema))
    .map((field) => {
      const description = `Read it from stdin instead, one line: ${lowerFirst(field.schema.description ?? '')}`
      return [pipedFlag(field), { type: 'boolean', description }] as const
    })
  return Object.fromEntries([...entries, ...piped])
}

const pipedFlag = ({ flag }: Field): string => flag.replace(/-env$/, '-stdin')
const lowerFirst = (text: string): string => text.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())

function argumentFor({ path, schema, options, required }: Field, making: boolean): ArgDef {
  const isMany = schema.type === 'array' || options.words === true || isSecretMap(schema)
  const needed = making && required && path.length === 1 && options.default === undefined
  const value = making && typeof options.default === 'string' ? { default: options.default } : {}
  const usual = making && typeof schema.default === 'string' ? ` (default ${schema.default})` : ''
  const shared = {
    description: `${schema.description ?? ''}${isMany ? ' (repeatable)' : ''}${usual}`,
    ...(needed ? { required: true } : {}),
    ...(isMany ? { repeatable: true } : {}),
  }
  const choices = (schema.items ?? schema).enum?.map(String)
  if (schema.type === 'boolean') {
    const canBeOff = !making || schema.default !== false
    return { ...shared, type: 'boolean', ...(canBeOff ? { negativeDescription: 'The opposite' } : {}) }
  }
  if (choices !== undefined) return { ...shared, ...value, type: 'enum', options: choices }
  const valueHint = hintOf(path, schema, options)
  return { ...shared, ...value, type: 'string', ...(valueHint === undefined ? {} : { valueHint }) }
}

function hintOf(path: readonly string[], schema: JsonSchema, { hint, json }: FlagOptions): string | undefined {
  if (hint !== undefined) return hint
  if (isSecretMap(schema)) return 'NAME=VARIABLE'
  if (isSecret(schema)) return 'VARIABLE'
  if (json !== undefined) return 'JSON'
  if (path.at(-1)?.endsWith('_seconds')) return 'SECONDS'
  const { type, format } = schema.items ?? schema
  if (recordOf(schema) !== undefined || recordsOf(schema) !== undefined) return 'NAME|UUID'
  if (schema['x-record']?.by === 'name') return 'NAME'
  if (format === 'uuid') return 'UUID'
  return type === 'integer' || type === 'number' ? 'N' : undefined
}

export type Values = Readonly<Record<string, unknown>>

/** From what a body is read. */
export interface Sources {
  terminal: Terminal
  input: Input
  api: Api
}

/**
 * The body that the flags describe, without members for flags that are not given. Throws `usage` for an unreadable
 * value.
 */
export async function readBody(fields: readonly Field[], values: Values, sources: Sources): Promise<Body> {
  const body: Body = {}
  for (const field of fields) {
    const value = await readField(field, values, sources)
    if (value !== undefined) assign(body, field.path, value)
  }
  requireWhole(fields, body)
  return body
}

export type Body = Record<string, unknown>

const isBody = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value)

function assign(body: Body, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    body[name] = value
    return
  }
  const inner = isBody(body[name]) ? body[name] : {}
  body[name] = inner
  assign(inner, rest, value)
}

/** An object that is given in part needs its other required members. */
function requireWhole(fields: readonly Field[], body: Body): void {
  for (const [name, part] of Object.entries(body)) {
    const members = fields.filter(({ path }) => path.length > 1 && path[0] === name && isBody(part))
    const needed = members.filter(({ required }) => required)
    if (needed.every(({ path }) => isBody(part) && part[path[1] ?? ''] !== undefined)) continue
    throw new Failure('usage', { message: `Also give ${needed.map(({ flag }) => `--${flag}`).join(', ')}` })
  }
}

async function readField(field: Field, values: Values, sources: Sources): Promise<unknown> {
  const { schema, options } = field
  const flag = `--${field.flag}`
  const given = values[field.flag]
  if (isSecret(schema) && values[pipedFlag(field)] === true) {
    if (given !== undefined) throw new Failure('usage', { message: `Use either ${flag} or --${pipedFlag(field)}` })
    return await readPiped(field, sources)
  }
  if (schema.type === 'boolean' || typeof given !== 'string') return given
  if (isSecretMap(schema)) return pairsFromEnvironment(flag, given, sources.terminal)
  if (isSecret(schema)) return fromEnvironment(given, sources.terminal)
  if (options.json !== undefined) {
    const texts = schema.type === 'array' ? linesOf(given) : undefined
    return texts === undefined
      ? readJson(flag, given, options.json)
      : texts.map((text) => readJson(flag, text, options.json ?? ''))
  }
  const record = recordOf(schema)
  if (record !== undefined) return await idOf(flag, given, record, sources.api)
  if (options.words) return linesOf(given)?.join(' ')
  if (schema.type === 'array') {
    const texts = options.commas ? linesOf(given) : readList(flag, given)
    return schema.items?.type === 'number' ? texts?.map((text) => readNumber(flag, text)) : texts
  }
  if (schema.type === 'integer') return readCount(flag, given, schema.minimum === 0 ? 0 : 1)
  if (schema.type !== 'number') return given
  // Only amounts of money must be above nothing.
  return schema.exclusiveMinimum === undefined ? readNumber(flag, given) : readAmount(flag, given)
}

async function readPiped({ schema }: Field, { terminal, input }: Sources): Promise<string> {
  if (input.interactive) terminal.note(`${schema.description ?? 'The secret'} (what you type is not shown):`)
  return (await input.hiddenLine()).trim()
}

/** Where the records are listed whose ids a list holds: the fields for which the API may be sent names first. */
export const referencesOf = (fields: readonly Field[]): References =>
  Object.fromEntries(
    fields.flatMap(({ path, schema }) => {
      const record = recordsOf(schema)
      return record === undefined ? [] : [[path.join('.'), record]]
    }),
  )

const recordsOf = ({ items, 'x-record': record = items?.['x-record'] }: JsonSchema): string | undefined =>
  items?.format === 'uuid' && record?.by === 'id' ? record.path : undefined

/** Where the records are of which the field has the id, if they can be named too. */
const recordOf = ({ format, 'x-record': record }: JsonSchema): string | undefined =>
  format === 'uuid' && record?.by === 'id' ? record.path : undefined
