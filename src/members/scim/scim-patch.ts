/**
 * PATCH (RFC 7644 section 3.5.2) as a change of a document: what comes out is checked and stored as a PUT would be.
 * Reads the forms that Entra and Okta send: operations in capitals, values without a path whose names are paths
 * themselves, members to remove as a value, booleans as text.
 */
import { z } from 'zod'
import { invalidValue, ScimError } from './scim-error.ts'
import { parseFilter } from './scim-filter.ts'

export type Document = Record<string, unknown>

/** The attributes of a kind of resource that are kept. */
export interface Shape {
  /** Attributes of one value. */
  single: readonly string[]
  /** Attributes with sub-attributes; `many`: a list of such. */
  complex: Readonly<Record<string, { many: boolean; sub: readonly string[] }>>
  /** Lower case: attributes that SCIM knows and that are not kept. They are accepted and left out. */
  ignored: ReadonlySet<string>
}

export const mostOperations = 100

const operations = z.object({
  Operations: z
    .array(
      z.object({
        op: z
          .string()
          .transform((op) => op.toLowerCase())
          .pipe(z.enum(['add', 'replace', 'remove'])),
        path: z.string().min(1).max(500).optional(),
        value: z.unknown().optional(),
      }),
    )
    .min(1)
    .max(mostOperations),
})
type Operation = 'add' | 'replace' | 'remove'

/** The document after all operations of a body, in their order. Throws `ScimError`. */
export function patched(document: Document, body: object, shape: Shape): Document {
  const read = operations.safeParse(canonical(body, ['Operations']))
  if (!read.success) {
    const detail = `Send Operations: 1 to ${mostOperations} of op add, replace or remove, each with path or value`
    throw new ScimError(400, 'invalidSyntax', detail)
  }
  const result = structuredClone(document)
  for (const { op, path, value } of read.data.Operations) {
    if (path !== undefined) apply(result, op, { ...pathOf(path, shape), value }, false)
    else if (op === 'remove') throw new ScimError(400, 'noTarget', 'A remove needs a path')
    else if (!isObject(value)) throw invalidValue('An operation without a path needs an object as its value')
    else {
      for (const [name, part] of Object.entries(value)) {
        apply(result, op, { ...pathOf(name, shape), value: part }, true)
      }
    }
  }
  return result
}

/**
 * The members whose names are those of `names` but for capitals, under these names. Others are left out, and what is
 * null or empty: it is unassigned (RFC 7643 section 2.5).
 */
export function canonical(value: object, names: readonly string[]): Document {
  const known = new Map(names.map((name) => [name.toLowerCase(), name]))
  const pairs = Object.entries(value).flatMap(([key, member]) => {
    const name = known.get(key.toLowerCase().replace(schemaUrn, ''))
    return name === undefined || member === null || member === '' ? [] : [[name, member]]
  })
  return Object.fromEntries(pairs)
}

const schemaUrn = /^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/i
const extensionUrn = /^urn:ietf:params:scim:schemas:extension:/i
const form = /^([a-z$][\w$-]*)(?:\[([^\]]*)\])?(?:\.([a-z$][\w$-]*))?$/i
const readOnly = new Set(['id', 'meta', 'schemas', 'groups'])

interface Path {
  /** Null: it is not kept. */
  name: string | null
  isReadOnly: boolean
  /** It is a list. */
  many: boolean
  filter: string | null
  sub: string | null
}

function pathOf(text: string, shape: Shape): Path {
  const nothing = { name: null, isReadOnly: false, many: false, filter: null, sub: null }
  if (extensionUrn.test(text)) return nothing
  const [matched, attribute = '', filter = null, sub = null] = form.exec(text.replace(schemaUrn, '')) ?? []
  const asked = attribute.toLowerCase()
  if (readOnly.has(asked)) return { ...nothing, isReadOnly: true }
  if (shape.ignored.has(asked)) return nothing
  const names = [...shape.single, ...Object.keys(shape.complex)]
  const name = names.find((known) => known.toLowerCase() === asked)
  if (matched === undefined || name === undefined) throw noPath()
  const complex = shape.complex[name]
  if (complex === undefined && (filter !== null || sub !== null)) throw noPath()
  if (complex?.many === false && filter !== null) throw noPath()
  const known = complex?.sub.find((one) => one.toLowerCase() === sub?.toLowerCase())
  return { name, isReadOnly: false, many: complex?.many === true, filter, sub: sub === null ? null : (known ?? sub) }
}

const noPath = (): ScimError => new ScimError(400, 'invalidPath', 'A path names no attribute that is known here')

function apply(document: Document, op: Operation, at: Path & { value: unknown }, isPart: boolean): void {
  const { name, isReadOnly, many, filter, sub, value } = at
  if (isReadOnly && !isPart) throw new ScimError(400, 'mutability', 'The attribute is read-only')
  if (name === null) return
  if (op !== 'remove' && value === undefined) throw invalidValue(`The operation ${op} needs a value`)
  const present = document[name]
  const list = Array.isArray(present) ? present.filter(isObject) : []
  if (many) document[name] = changedList(list, op, { filter, sub, value })
  else if (sub !== null) document[name] = withPart(isObject(present) ? present : {}, op, sub, value)
  else if (op === 'remove') delete document[name]
  else if (isObject(value) && isObject(present)) document[name] = { ...present, ...value }
  // Entra once wrote a single value as a list of one.
  else document[name] = Array.isArray(value) && value.length === 1 && isObject(value[0]) ? value[0].value : value
}

function withPart(present: Document, op: Operation, sub: string, value: unknown): Document {
  const { [sub]: _, ...others } = present
  return op === 'remove' ? others : { ...others, [sub]: value }
}

function changedList(
  list: readonly Document[],
  op: Operation,
  { filter, sub, value }: Pick<Path, 'filter' | 'sub'> & { value: unknown },
): Document[] {
  const wanted = filter === null ? [] : parseFilter(filter)
  const fits = (item: Document) =>
    wanted.every(({ attribute, value }) => {
      const key = Object.keys(item).find((name) => name.toLowerCase() === attribute)
      return key !== undefined && String(item[key]).toLowerCase() === String(value).toLowerCase()
    })
  if (op === 'remove') {
    if (sub !== null) return list.map((item) => (fits(item) ? withPart(item, op, sub, value) : item))
    if (filter !== null) return list.filter((item) => !fits(item))
    const named = value === undefined ? null : new Set(itemsOf(value).map((item) => item.value))
    return named === null ? [] : list.filter((item) => !named.has(item.value))
  }
  if (filter === null && sub === null) {
    const items = itemsOf(value)
    if (op === 'replace') return items
    const added = new Set(items.map((item) => item.value))
    const makesPrimary = items.some((item) => item.primary === true)
    const kept = list.filter((item) => !added.has(item.value))
    return [...(makesPrimary ? kept.map((item) => ({ ...item, primary: false })) : kept), ...items]
  }
  const changed = (item: Document): Document => {
    if (sub !== null) return { ...item, [sub]: value }
    if (!isObject(value)) throw invalidValue('This path needs an object as its value')
    return { ...item, ...value }
  }
  if (list.some(fits)) return list.map((item) => (fits(item) ? changed(item) : item))
  // Entra writes the first address of a type so.
  return [...list, changed(Object.fromEntries(wanted.map(({ attribute, value }) => [attribute, value])))]
}

function itemsOf(value: unknown): Document[] {
  const items = Array.isArray(value) ? value : [value]
  return items.map((item) => {
    if (isObject(item)) return item
    if (typeof item === 'string') return { value: item }
    throw invalidValue('A list holds objects with a value')
  })
}

const isObject = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
