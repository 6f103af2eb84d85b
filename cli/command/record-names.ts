/**
 * Names where the API takes ids. A request is sent as it was written. If the control plane then knows no such record,
 * or refuses the text because it is no id, the text is looked up among the names and the request is sent once more.
 *
 * What may be a name is marked: in a path by braces around the segment (`/v1/teams/{research}/members`), in a body or a
 * query by `references`, which says where the records are listed. What has the form of an id is never looked up.
 */
import { z } from 'zod'
import { Failure } from '../../src/failure.ts'
import { isUuid } from '../../src/lib/ids.ts'
import { nearest } from '../../src/lib/text/nearest.ts'
import { ApiRefusal } from './report.ts'

/** The path of a record that a person named. */
export const pathOf = (collection: string, idOrName: string): string => {
  // The first three would lead to another path.
  if (['', '.', '..'].includes(idOrName)) throw new Failure('usage', { message: 'An id or a name is needed' })
  return `${collection}/{${encodeURIComponent(idOrName)}}`
}

const markedSegment = /\{([^}]*)\}/

/** The path as it is sent. */
export const withoutMarks = (path: string): string => path.replaceAll(/[{}]/g, '')

/**
 * Where the records are listed that a text names; by a prefix of the text, such as `team:`, or by the value of another
 * field, where that says which.
 */
type Reference =
  | string
  | readonly string[]
  | { readonly byPrefix: Readonly<Record<string, string>> }
  | { readonly byField: string; readonly lists: Readonly<Record<string, string>> }

/** By the path of a field in a body or a query. */
export type References = Readonly<Record<string, Reference>>

interface Request {
  path: string
  query?: Readonly<Record<string, string | undefined>>
  body?: unknown
  references?: References
}

/** Reads a list of the API. */
interface List {
  json<Reply>(request: Pick<Request, 'path' | 'query'>, reply: z.ZodType<Reply>): Promise<Reply>
}

/** The request with ids for names. Null where nothing in it is a name. Throws a refusal that says what is not there. */
export async function withIds<Given extends Request>(
  request: Given,
  refusal: ApiRefusal,
  list: List,
): Promise<Given | null> {
  const path = refusal.status === 404 ? await idsInPath(request.path, refusal, list) : request.path
  const found = new Map<string, string>()
  for (const [field, reference] of Object.entries(request.references ?? {})) {
    for (const text of textsAt(request, field)) {
      const { prefix, collections } = meant(reference, text, request)
      const name = text.slice(prefix.length)
      if (collections.length === 0 || isUuid(name)) continue
      found.set(`${field} ${text}`, prefix + (await idIn(collections, name, refusal, list)))
    }
  }
  if (path === request.path && found.size === 0) return null
  const replaced = (value: unknown, field: string): unknown =>
    Array.isArray(value)
      ? value.map((each) => replaced(each, field))
      : isRecord(value)
        ? Object.fromEntries(
            Object.entries(value).map(([name, member]) => [name, replaced(member, joined(field, name))]),
          )
        : (found.get(`${field} ${value}`) ?? value)
  return {
    ...request,
    path,
    ...(request.body === undefined ? {} : { body: replaced(request.body, '') }),
    ...(request.query === undefined ? {} : { query: queryOf.parse(replaced(request.query, '')) }),
  }
}

function meant(
  reference: Reference,
  text: string,
  request: Request,
): { prefix: string; collections: readonly string[] } {
  if (typeof reference === 'string') return { prefix: '', collections: [reference] }
  if ('byField' in reference) {
    const list = textsAt(request, reference.byField).map((value) => reference.lists[value])[0]
    return { prefix: '', collections: list === undefined ? [] : [list] }
  }
  if (!('byPrefix' in reference)) return { prefix: '', collections: reference }
  const [prefix, collection] = Object.entries(reference.byPrefix).find(([each]) => text.startsWith(each)) ?? []
  return prefix === undefined || collection === undefined
    ? { prefix: '', collections: [] }
    : { prefix, collections: [collection] }
}

const queryOf = z.record(z.string(), z.string().optional())
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const joined = (field: string, name: string): string => (field === '' ? name : `${field}.${name}`)

function textsAt({ body, query }: Request, field: string): string[] {
  return [body, query].flatMap((source) => {
    let value: unknown = source
    for (const name of field.split('.')) value = isRecord(value) ? value[name] : undefined
    return [value].flat().filter((each): each is string => typeof each === 'string')
  })
}

async function idsInPath(path: string, refusal: ApiRefusal, list: List): Promise<string> {
  const marked = markedSegment.exec(path)
  if (marked === null) return path
  const text = decodeURIComponent(marked[1] ?? '')
  const before = path.slice(0, marked.index)
  const id = isUuid(text) ? text : await idIn([before.replace(/\/$/, '')], text, refusal, list)
  return await idsInPath(before + encodeURIComponent(id) + path.slice(marked.index + marked[0].length), refusal, list)
}

/** The id of the record with this name in one of the lists, or of the one that has the text for its id. */
async function idIn(collections: readonly string[], text: string, refusal: ApiRefusal, list: List): Promise<string> {
  const listed: Named[] = []
  for (const collection of collections) listed.push(...(await namedRecords(collection, text, list, refusal)))
  const kind = collections.map(kindAt).join(' or ')
  const id = pick(listed, text, kind)
  if (id !== null) return id
  const near = nearest(text, listed.flatMap(namesOf))
  throw new ApiRefusal({
    ...{ status: refusal.status, code: refusal.code, param: refusal.param, requestId: refusal.requestId },
    message: `There is no ${kind} "${text}"${near === null ? '' : `: did you mean "${near}"?`}`,
  })
}

/** The id of the record that a person named by a flag. Throws `usage` where there is none, or more than one. */
export async function idOf(flag: string, text: string, collection: string, list: List): Promise<string> {
  if (isUuid(text)) return text
  const listed = await namedRecords(collection, text, list)
  const id = pick(listed, text, kindAt(collection))
  if (id !== null) return id
  const near = nearest(text, listed.flatMap(namesOf))
  const hint = near === null ? '' : `: did you mean "${near}"?`
  throw new Failure('usage', { message: `${flag}: there is no ${kindAt(collection)} "${text}"${hint}` })
}

/** A record of any list. Members of a team have their ids elsewhere. */
export const namedSchema = z.looseObject({
  id: z.string().optional(),
  user_id: z.string().optional(),
  name: z.string().nullish(),
  email: z.string().optional(),
  status: z.string().optional(),
  rotated_to_id: z.string().nullish(),
})
type Named = z.infer<typeof namedSchema>

export const idIs = ({ id, user_id }: Named): string => id ?? user_id ?? ''
/** What a record is called by, the most telling first. */
export const namesOf = ({ email, name, id }: Named): string[] =>
  email !== undefined ? [email, ...(name ? [name] : [])] : name ? [name] : id === undefined || isUuid(id) ? [] : [id]

const ended: ReadonlySet<string | undefined> = new Set(['revoked', 'rotated', 'expired'])

/** Of records with one name these are meant: a rotated token, also within its grace, has left its name to the new one. */
export const isInUse = ({ status, rotated_to_id: next }: Named): boolean =>
  !ended.has(status) && (next === undefined || next === null)

/** Null where no record has the name. Throws `usage`, with the ids, where several have it. */
function pick(listed: readonly Named[], text: string, kind: string): string | null {
  const same = listed.filter(
    ({ id, name, email }) => id === text || name === text || email?.toLowerCase() === text.toLowerCase(),
  )
  const living = same.filter(isInUse)
  const [only, ...others] = living.length > 0 ? living : same
  if (only === undefined) return null
  if (others.length === 0) return idIs(only)
  const ids = [only, ...others].map((record) => idIs(record)).join(' or ')
  throw new Failure('usage', {
    message: `"${text}" is the name of ${others.length + 1} records of the kind ${kind}: use an id, ${ids}`,
  })
}

/** The only list that can be searched, and the only one that grows by itself. */
const searched = '/v1/tokens'

const listSchema = z.looseObject({ next_cursor: z.string().nullish() })

/** All records of a list. `refusal` is thrown where this caller may not read it. */
export async function namedRecords(
  collection: string,
  text: string,
  list: List,
  refusal?: ApiRefusal,
): Promise<Named[]> {
  const records: Named[] = []
  let cursor: string | undefined
  try {
    do {
      const query = { cursor, ...(collection === searched && text !== '' ? { name: text } : {}) }
      const page = await list.json({ path: collection, query }, listSchema)
      records.push(...z.array(namedSchema).parse(Object.values(page).find(Array.isArray)))
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  } catch (error) {
    throw refusal ?? error
  }
  return records
}

/** What a sentence calls the records of a list: `/v1/access-policies` has each an `access policy`. */
export const kindAt = (collection: string): string =>
  (collection.split('/').at(-1) ?? '')
    .replace(/ies$/, 'y')
    .replace(/s$/, '')
    .replaceAll('-', ' ')
    .replace(/^mcp /, 'MCP ')
