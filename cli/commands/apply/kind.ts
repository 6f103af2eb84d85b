/**
 * What `apply`, `export` and `import` have to know of one kind of record. Nearly all of it follows from the kind's
 * description (`src/api/resource.ts`); `kindOf` takes what does not.
 */
import { z } from 'zod'
import type { Resource } from '../../../src/api/resource.ts'
import { type Entry, entryOf, type Overrides, type Place, replaced, withoutId } from './places.ts'

/** What is there, as the API shows it. */
export type Shown = Readonly<Record<string, unknown>>

/** A call of the API that belongs to a record. */
export interface Call {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  readonly version?: number
}

/** What a further call needs to know. */
export interface Situation {
  readonly wanted: Entry
  /** As a file would say what is there; null for a new record. */
  readonly present: Entry | null
  /** The record's own id, or what stands for it until it is made. */
  readonly id: string
  idOf(path: string, name: string): string
}

export interface KindOptions extends Overrides {
  /** The member of a file that holds the kind's list; the API's, if it is not given. */
  member?: string
  /** The field of the file that names a record: `name`, if it is not given. */
  key?: string
  /** The member of the API's record that is the id; it is the key's where the caller chooses the id. */
  id?: string
  /** The body that a new record takes, where it is none of the description's. */
  create?: z.ZodType
  /** Further fields of the record, which the calls of `more` change. */
  further?: z.ZodRawShape
  /** What a record has of fields that a file leaves out, where the schema does not say it; else null. */
  absent?: Entry
  /** Fields that stay as they are where a file leaves them out. */
  kept?: readonly string[]
  /** Fields that the record shows and whose change is none, such as a preset. */
  ignored?: readonly string[]
  /** Secrets are sent anew with a change of one of these fields. */
  secretsWith?: readonly string[]
  /** By the API's name of a secret, a text that its schema takes: it stands for the secret where an entry is checked. */
  standIns?: Readonly<Record<string, string>>
  /** The records that a reference can name, where that depends on a value. */
  referredPaths?: readonly string[]
  /** Fields of which the record shows too little to write them to a file. */
  unexported?: readonly string[]
  /** What of a field is compared, where the record does not show all of it. */
  compared?: Readonly<Record<string, (value: unknown) => unknown>>
  /** The record's fields as its body has them, where they differ. */
  shown?(record: Shown): Entry
  /** An entry as its record will be: with names and addresses as the control plane writes them. */
  normalised?(entry: Entry): Entry
  /** Throws a `Failure` for an entry that the API would not take, by the API's own rules. */
  check?(body: unknown): void
  /** Calls after the one that makes or changes the record. */
  more?(situation: Situation): Call[]
  /** The calls that take a record away, where that is not DELETE; none for one that stays. */
  remove?(record: Shown, id: string): Call[]
}

export interface Kind
  extends Required<
    Pick<
      KindOptions,
      'member' | 'key' | 'absent' | 'kept' | 'unexported' | 'compared' | 'standIns' | 'referredPaths' | 'check' | 'more'
    >
  > {
  /** As a sentence names it. */
  readonly one: string
  readonly path: string
  /** The member of the API's pages. */
  readonly plural: string
  /** Its place among the kinds: what others refer to comes first. */
  readonly order: number
  /** Whether the key is the id. */
  readonly choosesId: boolean
  readonly entry: z.ZodType
  readonly places: readonly Place[]
  /** The fields of an entry that are compared, in the order of the schema. */
  readonly fields: readonly string[]
  /** Those that a record can change. */
  readonly changeable: ReadonlySet<string>
  readonly secretsWith: ReadonlySet<string>
  readonly body: z.ZodType
  /** By a field of the entry, the API's name for it; none for `further` fields. */
  readonly apiNames: Readonly<Record<string, string>>
  /** The API's names that a new record's body may have. */
  readonly bodyFields: ReadonlySet<string>
  idOf(record: Shown): string
  /** The name by which files know it. */
  nameOf(record: Shown): string
  normalised(entry: Entry): Entry
  /** What is there, as a file would say it apart from names; a secret that is there is `secretThere`. */
  shown(record: Shown): Entry
  remove(record: Shown, id: string): Call[]
}

/** What stands for a secret that is there, which nobody is shown. */
export const secretThere = '(secret)'

export const entrySchema = z.record(z.string(), z.unknown())

type Description = Pick<Resource, 'one' | 'plural' | 'path' | 'update'> & { create: z.ZodType }

/** A kind before the list of kinds gives it its place. */
export type KindAlone = Omit<Kind, 'order'>

export function kindOf(resource: Description, options: KindOptions = {}): KindAlone {
  const { key = 'name', further = {}, ignored = [] } = options
  const body = options.create ?? resource.create
  const { update } = resource
  const bodyFields = fieldsOf(body)
  const updateOnly = Object.entries(update.shape).filter(([name]) => !bodyFields.includes(name))
  const { entry, places } = entryOf(extended(body, { ...Object.fromEntries(updateOnly), ...further }), options)
  const fileName = (name: string) => fileNameOf(name, places, options)
  const apiKey =
    Object.entries(options.names ?? {}).find(([apiName, name]) => name === key && !apiName.includes('.'))?.[0] ?? key
  const id = options.id ?? 'id'
  return {
    member: options.member ?? resource.plural,
    one: resource.one,
    path: resource.path,
    plural: resource.plural,
    key,
    choosesId: id === apiKey,
    entry,
    places,
    body,
    bodyFields: new Set(bodyFields),
    apiNames: Object.fromEntries([...bodyFields, ...Object.keys(update.shape)].map((name) => [fileName(name), name])),
    fields: fieldsOf(entry).filter((name) => name !== key && !ignored.includes(name)),
    changeable: new Set([...Object.keys(update.shape), ...Object.keys(further)].map(fileName)),
    absent: options.absent ?? {},
    kept: options.kept ?? [],
    unexported: options.unexported ?? [],
    compared: options.compared ?? {},
    standIns: options.standIns ?? {},
    referredPaths: options.referredPaths ?? ['/v1/teams', '/v1/users'],
    secretsWith: new Set(options.secretsWith ?? []),
    check: options.check ?? (() => undefined),
    more: options.more ?? (() => []),
    idOf: (record) => String(record[id]),
    nameOf: (record) => String(record[apiKey] ?? record.id),
    normalised: options.normalised ?? ((given) => given),
    shown(record) {
      const given = { ...record, ...secretsShown(record, places), ...options.shown?.(record) }
      const fields = Object.entries(given).filter(([name]) => fieldsOf(entry).includes(fileName(name)))
      return Object.fromEntries(fields)
    },
    remove: options.remove ?? ((_, one) => [{ method: 'DELETE', path: `${resource.path}/${encodeURIComponent(one)}` }]),
  }
}

/** The names of an object's members; of a union, those of its first option. */
function fieldsOf(schema: z.ZodType): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape)
  if (schema instanceof z.ZodLazy) return fieldsOf(inner(schema.unwrap()))
  if (schema instanceof z.ZodDiscriminatedUnion) return fieldsOf(inner(schema.options[0]))
  throw new TypeError('An entry is no object')
}

const inner = (schema: unknown): z.ZodType => {
  if (schema instanceof z.ZodType) return schema
  throw new TypeError('A schema is none of zod')
}

const extended = (schema: z.ZodType, shape: z.ZodRawShape): z.ZodType =>
  schema instanceof z.ZodObject && Object.keys(shape).length > 0 ? schema.extend(shape) : schema

function fileNameOf(name: string, places: readonly Place[], { names }: Overrides): string {
  const given = names?.[name]
  if (given !== undefined) return given
  const place = places.find(({ apiPath, refersTo }) => apiPath[0] === name && refersTo !== null)
  return place !== undefined && place.apiPath.filter((each) => each !== '*').length === 1 ? withoutId(name) : name
}

/**
 * Secrets as the API shows them: `has_api_key` of `api_key`, `header_names` of `headers`. One within an object is there
 * if the object is.
 */
function secretsShown(record: Shown, places: readonly Place[]): Entry {
  const found = places.filter(({ refersTo }) => refersTo === null)
  return Object.fromEntries(
    found.map(({ apiPath: [name = '', member] }) => {
      if (member === undefined) return [name, record[`has_${name}`] === true ? secretThere : null]
      if (member !== '*') return [name, withSecret(record[name], member)]
      const names = record[`${name.replace(/s$/, '')}_names`]
      const there = Array.isArray(names) ? names.map((each) => [String(each), secretThere]) : []
      return [name, there.length === 0 ? null : Object.fromEntries(there)]
    }),
  )
}

const withSecret = (value: unknown, member: string): unknown =>
  typeof value === 'object' && value !== null ? { ...value, [member]: secretThere } : (value ?? null)

/** An entry with every field that is compared, and secrets that nobody sees. */
export function whole(kind: Kind, entry: Entry): Entry {
  const hidden = masked(kind, kind.normalised(entry))
  return plain(
    Object.fromEntries(
      kind.fields.map((name) => {
        const value = hidden[name] ?? kind.absent[name] ?? null
        return [name, kind.compared[name]?.(value) ?? value]
      }),
    ),
  )
}

/** With `secretThere` for each secret; an object without any is none. */
export function masked(kind: Kind, entry: Entry): Entry {
  let hidden: unknown = entry
  for (const { path, refersTo } of kind.places) {
    if (refersTo !== null) continue
    hidden = replaced(hidden, path, path, () => secretThere)
    if (path.at(-1) === '*') hidden = replaced(hidden, path.slice(0, -1), [], (all) => (isEmpty(all) ? null : all))
  }
  return entrySchema.parse(hidden)
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Without members that are undefined. */
const plain = (entry: Entry): Entry => JSON.parse(JSON.stringify(entry))

/** What is there as a file would say it, every field that is compared, with names instead of ids. */
export function presentEntry(kind: Kind, record: Shown, nameOf: (path: string, id: string) => string): Entry {
  let entry: unknown = kind.shown(record)
  const asRead = entrySchema.parse(entry)
  for (const { path, apiPath, refersTo } of kind.places) {
    entry = replaced(entry, apiPath, path, (found) => {
      const target = refersTo?.(asRead, found) ?? null
      if (target === null || typeof found !== 'string') return found
      const { path: records, prefix = '' } = target
      return prefix + nameOf(records, found.slice(prefix.length))
    })
  }
  const renamed = entrySchema.parse(entry)
  return plain(Object.fromEntries(kind.fields.map((name) => [name, renamed[name] ?? kind.absent[name] ?? null])))
}
