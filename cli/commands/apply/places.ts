/**
 * The schema of an entry in a file, made from the schema of the API's body. They differ in two ways, and this finds
 * every place where they do:
 *
 *  - A reference to another record (`refersTo`) is the record's name, and its field loses `_id`: `team_ids: [UUID]` is
 *    `teams: [NAME]`.
 *  - A secret (`secret`) is a reference to where it is (`secret-reference.ts`).
 */
import { z } from 'zod'
import { secretReference } from './secret-reference.ts'

export interface Place {
  /** Members of the entry down to the value; `*` is each element of a list or each value of a record. */
  readonly path: readonly string[]
  /** The members of the API's body. */
  readonly apiPath: readonly string[]
  /** Which records it names; `null`: it is a secret. */
  readonly refersTo: Reference | null
}

/** Which records a value names, or null if it names none. `prefix` stands before the name, and before the id. */
export type Reference = (entry: Entry, value: unknown) => { path: string; prefix?: string } | null

/** A record as a file says it, or a part of one. */
export type Entry = Readonly<Record<string, unknown>>

/** By the API's path of a value, without elements of lists: `members.tokens`. */
export interface Overrides {
  /** References that the schema does not say. */
  readonly references?: Readonly<Record<string, Reference>>
  /** What a field is called in a file. */
  readonly names?: Readonly<Record<string, string>>
  /** Fields that no file has. */
  readonly omit?: readonly string[]
}

const recordMeta = z.object({ 'x-record': z.object({ path: z.string(), by: z.literal('id') }) })
const secretMeta = z.object({ format: z.literal('password') })

interface At {
  readonly path: readonly string[]
  readonly apiPath: readonly string[]
}

/** The schema of an entry, and the places where it differs from the API's body. */
export function entryOf(body: z.ZodType, overrides: Overrides): { entry: z.ZodType; places: Place[] } {
  const places: Place[] = []
  const entry = inFile(body, { path: [], apiPath: [] })
  return { entry, places: distinct(places) }

  function inFile(schema: z.ZodType, at: At): z.ZodType {
    const meta = schema.meta() ?? {}
    const named = overrides.references?.[at.apiPath.filter((name) => name !== '*').join('.')]
    const path = recordMeta.safeParse(meta).data?.['x-record'].path
    const record = named ?? (path === undefined ? undefined : () => ({ path }))
    if (record !== undefined) return reference(schema, record, at)
    if (secretMeta.safeParse(meta).success) {
      places.push({ ...at, refersTo: null })
      return secretReference
    }
    const rebuilt = withInner(schema, at)
    return rebuilt === schema || schema.description === undefined ? rebuilt : rebuilt.describe(schema.description)
  }

  /** A name, or a list of names; optional, nullable and with a default as the schema is. */
  function reference(schema: z.ZodType, record: Reference, at: At): z.ZodType {
    const [inner, wrap] = unwrapped(schema)
    const list = inner instanceof z.ZodPipe && inner.in instanceof z.ZodType ? unwrapped(inner.in)[0] : inner
    const isList = list instanceof z.ZodArray
    places.push({
      path: isList ? [...at.path, '*'] : at.path,
      apiPath: isList ? [...at.apiPath, '*'] : at.apiPath,
      refersTo: record,
    })
    const name = z.string().min(1)
    const plain = isList ? z.array(name) : name
    return wrap(schema.description === undefined ? plain : plain.describe(schema.description))
  }

  function withInner(schema: z.ZodType, at: At): z.ZodType {
    if (schema instanceof z.ZodObject) return object(schema, at)
    if (schema instanceof z.ZodLazy) return inFile(typed(schema.unwrap()), at)
    if (schema instanceof z.ZodDiscriminatedUnion) {
      const [first, ...others] = schema.options.map((option) => object(typed(option), at))
      return first === undefined ? schema : z.discriminatedUnion(schema.def.discriminator, [first, ...others])
    }
    const [inner, wrap] = unwrapped(schema)
    if (inner !== schema) return same(inner, inFile(inner, at), schema, wrap)
    const each = { path: [...at.path, '*'], apiPath: [...at.apiPath, '*'] }
    if (schema instanceof z.ZodArray) {
      const element = typed(schema.element)
      return same(element, inFile(element, each), schema, (changed) => z.array(changed))
    }
    if (schema instanceof z.ZodRecord) {
      const value = typed(schema.valueType)
      return same(value, inFile(value, each), schema, (changed) => z.record(z.string(), changed))
    }
    return schema
  }

  function object(schema: z.ZodType, at: At): z.ZodObject {
    if (!(schema instanceof z.ZodObject)) throw new TypeError('An option of a union is no object')
    let changed = false
    const members = Object.entries(schema.shape).flatMap(([apiName, given]) => {
      const apiPath = [...at.apiPath, apiName]
      if (overrides.omit?.includes(apiPath.join('.'))) {
        changed = true
        return []
      }
      const before = places.length
      const name = overrides.names?.[apiPath.join('.')] ?? apiName
      const schemaHere = typed(given)
      const inner = inFile(schemaHere, { path: [...at.path, name], apiPath })
      const last = places.at(-1)
      // A reference that stands here, not one deeper in it.
      const isReference = places.length > before && last?.refersTo !== null && isAt(last?.apiPath, apiPath)
      const fileName = isReference && name === apiName ? withoutId(apiName) : name
      if (last !== undefined && fileName !== name) {
        places.splice(-1, 1, { ...last, path: [...at.path, fileName, ...last.path.slice(at.path.length + 1)] })
      }
      changed ||= inner !== schemaHere || fileName !== apiName
      return [[fileName, inner] as const]
    })
    return changed ? z.strictObject(Object.fromEntries(members)) : schema
  }
}

const isAt = (path: readonly string[] | undefined, at: readonly string[]): boolean =>
  path?.filter((name) => name !== '*').join('.') === at.filter((name) => name !== '*').join('.')

export const withoutId = (name: string): string => name.replace(/_id$/, '').replace(/_ids$/, 's')

const same = (
  inner: z.ZodType,
  changed: z.ZodType,
  schema: z.ZodType,
  build: (changed: z.ZodType) => z.ZodType,
): z.ZodType => (inner === changed ? schema : build(changed))

/** What is within optional, nullable and default, and how these are put around another schema. */
function unwrapped(schema: z.ZodType): [z.ZodType, (inner: z.ZodType) => z.ZodType] {
  const around = (inner: z.ZodType, wrap: (inner: z.ZodType) => z.ZodType) => {
    const [innermost, wrapInner] = unwrapped(inner)
    return [innermost, (changed: z.ZodType) => wrap(wrapInner(changed))] satisfies [z.ZodType, unknown]
  }
  if (schema instanceof z.ZodOptional) return around(typed(schema.unwrap()), (inner) => inner.optional())
  if (schema instanceof z.ZodNullable) return around(typed(schema.unwrap()), (inner) => inner.nullable())
  if (schema instanceof z.ZodDefault) {
    const { defaultValue } = schema.def
    return around(typed(schema.unwrap()), (inner) => inner.default(defaultValue))
  }
  if (schema instanceof z.ZodPrefault) {
    const { defaultValue } = schema.def
    return around(typed(schema.unwrap()), (inner) => inner.prefault(defaultValue))
  }
  return [schema, (inner) => inner]
}

/** zod's own types name the inner schema by its core only. */
function typed(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodType) return schema
  throw new TypeError('A schema is none of zod')
}

/** The options of a union have the same places. */
const distinct = (places: readonly Place[]): Place[] => [
  ...new Map(places.map((place) => [place.path.join('.'), place])).values(),
]

/** A member of what may be an object. */
export const entryMember = (value: unknown, name: string | number): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined

/** A copy of a value with what stands at a path replaced; the path's last member is renamed to `as`. */
export function replaced(
  value: unknown,
  path: readonly string[],
  as: readonly string[],
  change: (found: unknown, at: readonly string[]) => unknown,
  at: readonly string[] = [],
): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value === null || value === undefined ? value : change(value, at)
  const [newName = name, ...newRest] = as
  if (name === '*' && Array.isArray(value)) {
    return value.map((each, index) => replaced(each, rest, newRest, change, [...at, String(index)]))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) =>
      name === '*' || member === name
        ? [name === '*' ? member : newName, replaced(inner, rest, newRest, change, [...at, member])]
        : [member, inner],
    ),
  )
}
