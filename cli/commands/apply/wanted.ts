/**
 * What files ask for: every entry, checked against the schema of its kind and by the API's own rules. All faults are
 * told at once, each with its file, line, column and the path of the field.
 */
import { z } from 'zod'
import { asFailure, Failure } from '../../../src/failure.ts'
import { nearest } from '../../../src/lib/text/nearest.ts'
import type { Path, Source } from './documents.ts'
import { entrySchema, type Kind } from './kind.ts'
import { kinds } from './kinds/kinds.ts'
import { type Entry, entryMember, replaced, withoutId } from './places.ts'

export interface Wanted {
  readonly kind: Kind
  readonly name: string
  readonly entry: Entry
  readonly source: Source
  /** Where it stands: `providers`, 0. */
  readonly at: Path
}

/** What one or more files say. */
export interface Wish {
  readonly entries: readonly Wanted[]
  /** The kinds of which a file has a list, empty ones too. */
  readonly kinds: ReadonlySet<Kind>
}

const faultsShown = 20

/** Gathers faults, to tell all at once. */
export class Faults {
  readonly #lines: string[] = []

  add(source: Source, path: Path, message: string, ofName = false): void {
    this.#lines.push(faultLine(source, path, message, ofName))
  }

  /** Throws `usage` with all of them, if there is any. */
  end(): void {
    if (this.#lines.length === 0) return
    const more = this.#lines.length - faultsShown
    const lines = [...this.#lines.slice(0, faultsShown), ...(more > 0 ? [`and ${more} more`] : [])]
    throw new Failure('usage', { message: lines.join('\n') })
  }
}

/** `FILE:LINE:COLUMN: PATH: MESSAGE`, and the record. */
export function faultLine(source: Source, path: Path, message: string, ofName = false): string {
  const position = source.position(path, ofName)
  const place = [source.name, ...(position === null ? [] : [position])].join(':')
  return `${place}: ${path.length === 0 ? '' : `${written(path)}: `}${message}${recordAt(source.content, path)}`
}

/** The record that a fault is in, as its file names it. */
function recordAt(content: unknown, [member, index]: Path): string {
  const kind = kinds.find((each) => each.member === member)
  const name = kind === undefined || index === undefined ? null : valueAt(content, [kind.member, index, kind.key])
  return kind === undefined || typeof name !== 'string' ? '' : ` (${kind.one} ${JSON.stringify(name)})`
}

const written = (path: Path): string =>
  path.map((name, index) => (typeof name === 'number' ? `[${name}]` : index === 0 ? name : `.${name}`)).join('')

/** Checks documents. Throws `usage` with every fault. */
export function wantedOf(sources: readonly Source[]): Wish {
  const faults = new Faults()
  const found: Wanted[] = []
  const listed = new Set<Kind>()
  for (const source of sources) {
    const content = z.record(z.string(), z.unknown()).safeParse(source.content ?? {})
    if (!content.success) {
      faults.add(
        source,
        [],
        `It holds no lists: write ${kinds.map(({ member }) => member).join(', ')}, each with a list`,
      )
      continue
    }
    for (const [member, list] of Object.entries(content.data)) {
      const kind = kinds.find((each) => each.member === member)
      if (kind === undefined) faults.add(source, [member], unknownMember(member), true)
      else if (!Array.isArray(list)) faults.add(source, [member], 'Write a list', true)
      else {
        listed.add(kind)
        found.push(
          ...list.flatMap((entry, index) => checkedEntry(kind, entry, { source, at: [member, index] }, faults)),
        )
      }
    }
  }
  requireOnce(found, faults)
  faults.end()
  if (listed.size === 0) {
    const names = sources.map(({ name }) => name).join(', ')
    throw new Failure('usage', { message: `${names} has no list: ${kinds.map(({ member }) => member).join(', ')}` })
  }
  return { entries: found, kinds: listed }
}

const unknownMember = (member: string): string => {
  const meant = nearest(
    member,
    kinds.map((kind) => kind.member),
  )
  return meant === null
    ? `nothing has this name; there are ${kinds.map((kind) => kind.member).join(', ')}`
    : `nothing has this name: did you mean ${meant}?`
}

type Where = Pick<Wanted, 'source' | 'at'>

function checkedEntry(kind: Kind, given: unknown, { source, at }: Where, faults: Faults): Wanted[] {
  const parsed = kind.entry.safeParse(withoutNulls(given))
  if (!parsed.success) {
    for (const issue of parsed.error.issues) addIssue(issue, { kind, given, source, at }, faults)
    return []
  }
  try {
    const entry = kind.normalised(entrySchema.parse(parsed.data))
    const name = entry[kind.key]
    if (typeof name !== 'string') throw new Failure('usage', { message: 'is missing', param: kind.key })
    const body = standIn(kind, entry)
    const whole = kind.body.safeParse(body)
    if (!whole.success) {
      for (const { path, message } of whole.error.issues)
        faults.add(source, [...at, ...pathInFile(kind, path)], message)
      return []
    }
    kind.check(whole.data)
    return [{ kind, name, entry, source, at }]
  } catch (thrown) {
    const { message, param } = asFailure(thrown)
    faults.add(source, [...at, ...pathInFile(kind, pathOfParam(param))], message)
    return []
  }
}

/** A field that is null is as one that is left out. */
const withoutNulls = (given: unknown): unknown => {
  const object = entrySchema.safeParse(given)
  return object.success ? Object.fromEntries(Object.entries(object.data).filter(([, value]) => value !== null)) : given
}

/** The body of an entry with a stand-in for each id and each secret, for the checks that look at a whole body. */
function standIn(kind: Kind, entry: Entry): Record<string, unknown> {
  let body: unknown = entry
  for (const { path, apiPath, refersTo } of kind.places) {
    body = replaced(body, path, apiPath, (found) => {
      const target = refersTo === null ? null : refersTo(entry, found)
      if (refersTo === null) return kind.standIns[apiPath.join('.')] ?? 'x'
      return target === null ? found : (target.prefix ?? '') + noId(String(found))
    })
  }
  return newBody(kind, bodyNames(kind, entrySchema.parse(body)))
}

/** An id of no record, another one for each name. */
const noId = (name: string): string =>
  `00000000-0000-4000-8000-${new Bun.CryptoHasher('md5').update(name).digest('hex').slice(0, 12)}`

/** With the API's names, and without fields that belong to other calls. */
export const bodyNames = (kind: Kind, entry: Entry): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(entry).flatMap(([name, value]) => {
      if (value === undefined) return []
      const apiName = kind.apiNames[name] ?? (Object.values(kind.apiNames).includes(name) ? name : null)
      return apiName === null ? [] : [[apiName, value]]
    }),
  )

/** Without what a record gets only after it was made. */
export const newBody = ({ bodyFields }: Kind, body: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([name]) => bodyFields.has(name)))

/** The path of a field that the API names: `targets.0.provider`. */
export const pathOfParam = (param: string | null): (string | number)[] =>
  param === null ? [] : param.split('.').map((each) => (/^\d+$/.test(each) ? Number(each) : each))

/** A path of the API's body as it is in the file. */
export function pathInFile(kind: Kind, path: readonly PropertyKey[]): (string | number)[] {
  const plain = path.map((name) => (typeof name === 'number' ? name : String(name)))
  const place = kind.places.find(({ apiPath }) =>
    apiPath.every((name, index) => index >= plain.length || name === '*' || name === plain[index]),
  )
  const [first, ...rest] = plain.map((name, index) => {
    const named = place?.path[index]
    return named === undefined || named === '*' ? name : named
  })
  if (first === undefined) return []
  const known = Object.entries(kind.apiNames).find(([, apiName]) => apiName === first)
  return [known === undefined ? first : known[0], ...rest]
}

type Issue = z.core.$ZodIssue

function addIssue(
  issue: Issue,
  { kind, given, source, at }: Where & { kind: Kind; given: unknown },
  faults: Faults,
): void {
  const path = issue.path.map((name) => (typeof name === 'number' ? name : String(name)))
  if (issue.code === 'unrecognized_keys') {
    for (const name of issue.keys) {
      const known = membersAt(kind.entry, path, given)
      const meant = known.find((each) => each === withoutId(name)) ?? nearest(name, known)
      const message =
        meant === null ? `is no field; there are ${known.join(', ')}` : `is no field: did you mean ${meant}?`
      faults.add(source, [...at, ...path, name], message, true)
    }
    return
  }
  faults.add(source, [...at, ...path], messageOf(issue, valueAt(given, path), kind))
}

function messageOf(issue: Issue, value: unknown, kind: Kind): string {
  if (value === undefined) return 'is missing'
  if (issue.code === 'invalid_union' && issue.discriminator !== undefined) {
    return choices(discriminators(kind.entry, issue.discriminator), value)
  }
  if (issue.code === 'invalid_type') return `Write ${article(issue.expected)}, not ${article(kindOf(value))}`
  return issue.message
}

const article = (type: string): string =>
  ({
    string: 'a text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
    record: 'an object',
    null: 'nothing',
  })[type] ?? type

const kindOf = (value: unknown): string =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : value instanceof Date ? 'a date' : typeof value

function choices(values: readonly string[], value: unknown): string {
  const meant = nearest(String(value), values)
  return `Write one of ${values.join(', ')}${meant === null ? '' : `: did you mean ${meant}?`}`
}

const valueAt = (value: unknown, path: Path): unknown => path.reduce<unknown>(entryMember, value)

interface JsonSchema {
  properties?: Record<string, JsonSchema>
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  const?: unknown
}

/** The members that an object may have, by the JSON schema of its kind. */
function membersAt(schema: z.ZodType, path: Path, given: unknown): string[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  let found: JsonSchema[] = optionsOf(json).filter((option) => fits(option, given))
  for (const name of path) {
    found = found.flatMap((each) =>
      optionsOf(each).flatMap(({ properties, items, additionalProperties }) => {
        if (typeof name === 'number') return items === undefined ? [] : [items]
        const member = properties?.[name] ?? additionalProperties
        return typeof member === 'object' ? [member] : []
      }),
    )
  }
  return [...new Set(found.flatMap(optionsOf).flatMap(({ properties = {} }) => Object.keys(properties)))]
}

const optionsOf = (schema: JsonSchema): JsonSchema[] => [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]

/** Whether an option of a union is the one that an entry means, by its constant members. */
const fits = ({ properties = {} }: JsonSchema, given: unknown): boolean =>
  Object.entries(properties).every(
    ([name, member]) => member.const === undefined || valueAt(given, [name]) === member.const,
  )

function discriminators(schema: z.ZodType, name: string): string[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  return optionsOf(json).flatMap(({ properties }) => {
    const value = properties?.[name]?.const
    return value === undefined ? [] : [String(value)]
  })
}

function requireOnce(found: readonly Wanted[], faults: Faults): void {
  const first = new Map<string, Wanted>()
  for (const wanted of found) {
    const key = `${wanted.kind.member} ${wanted.name}`
    const before = first.get(key)
    if (before === undefined) first.set(key, wanted)
    else {
      const position = before.source.position(before.at)
      const where = [before.source.name, ...(position === null ? [] : [position])].join(':')
      faults.add(wanted.source, wanted.at, `The ${wanted.kind.one} "${wanted.name}" stands twice: also at ${where}`)
    }
  }
}
