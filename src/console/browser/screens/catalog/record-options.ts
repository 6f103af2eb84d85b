/** Records as what can be chosen in a form, by their names. */
import { useRef } from 'preact/hooks'
import { type JsonSchema, type RecordList, recordsNamedBy } from '../../api/description.ts'
import { everyPage } from '../../api/every-page.ts'
import { request } from '../../api/request.ts'
import { api, type TokenRecord } from '../../api/routes.ts'
import { humanize, shortId } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import type { Finder, Options } from '../../parts/forms/choice.tsx'
import { type Choices, choicesKey, type JsonObject } from '../../parts/forms/schema-form.tsx'
import { type Loaded, useLoaded } from '../../parts/loaded.tsx'

export type Readers = Readonly<Record<string, () => Promise<Options | Finder>>>

/** Every list of records that members of a body name. `value` is what the form holds: it may say which list is meant. */
function listsNamedBy(schema: JsonSchema, value: JsonObject): RecordList[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, part]) => {
    const list = recordsNamedBy(part, value)
    if (list != null) return [list]
    const inner = value[name]
    return [part, part.items ?? {}, ...(part.anyOf ?? [])].flatMap((each) =>
      listsNamedBy(each, isObject(inner) ? inner : {}),
    )
  })
}

/**
 * What can be chosen in a form: the records that its members name, and what `others` reads, by the names of members.
 * Where something could not be read, ids are typed: each such member has its plain field.
 */
export function useChoices(
  schema: JsonSchema,
  value: JsonObject = {},
  others: Readers = {},
): Loaded<unknown> & { value: Choices } {
  const known = useRef(new Map<string, ReturnType<Readers[string]>>())
  const lists = listsNamedBy(schema, value).map(
    (list) =>
      [
        choicesKey(list),
        async () => (list.path === '/v1/tokens' ? tokens : recordChoices(list.path, list.by)),
      ] as const,
  )
  const readers = { ...others, ...Object.fromEntries(lists) }
  const keys = Object.keys(readers)
  const readOnce = (key: string, read: Readers[string]) => {
    const options = known.current.get(key) ?? read()
    known.current.set(key, options)
    options.catch(() => known.current.delete(key))
    return options
  }
  const found = useLoaded<Choices>(`choices ${keys.join()}`, async () =>
    Object.fromEntries(
      await Promise.all(Object.entries(readers).map(async ([key, read]) => [key, await readOnce(key, read)] as const)),
    ),
  )
  const onTheirWay = found.loading ? Object.fromEntries(keys.map((key) => [key, null])) : {}
  return { ...found, value: { ...onTheirWay, ...found.value } }
}

const tokenOption = ({ id, name, token_prefix, status }: TokenRecord) =>
  [id, `${name}, ${token_prefix}…${status === 'active' ? '' : ` (${humanize(status)})`}`] as const

/** Tokens are too many to be read at once. */
const tokens: Finder = {
  async search(text, signal) {
    const query = { limit: 20, name: text === '' ? undefined : text.slice(0, 200) }
    return (await api('GET /v1/tokens', { query, signal })).tokens.map(tokenOption)
  },
  named: (ids, signal) =>
    Promise.all(
      ids.map((id) =>
        api('GET /v1/tokens/{id}', { params: { id }, signal }).then(tokenOption, () => [id, shortId(id)] as const),
      ),
    ),
}

/** The records of a page: its one list. */
export const recordsOf = (page: JsonObject): JsonObject[] =>
  (Object.values(page).find(Array.isArray) ?? []).filter(isObject)

/** Every record of a route. */
export const everyRecord = (path: string, signal?: AbortSignal): Promise<JsonObject[]> =>
  everyPage((query) => request<JsonObject & { next_cursor: string | null }>('GET', path, { query, signal }), recordsOf)

type By = 'id' | 'name' | 'email'

/** Lists that the API searches by name: they may be long. */
const searched: ReadonlySet<string> = new Set([
  ...['/v1/teams', '/v1/users', '/v1/catalog/models', '/v1/budgets', '/v1/consumer-groups'],
  ...['/v1/access-policies', '/v1/attribution-dimensions', '/v1/tokens'],
])

export const isSearched = (path: string): boolean => searched.has(path)

/** The records of a searched list whose names have the text, so many at most as `limit` says. */
export async function recordsNamed(
  path: string,
  text: string,
  { limit, signal }: { limit: number; signal?: AbortSignal | undefined },
): Promise<{ records: JsonObject[]; more: boolean }> {
  const query = { limit, name: text === '' ? undefined : text.slice(0, 200) }
  const page = await request<JsonObject & { next_cursor: string | null }>('GET', path, { query, signal })
  return { records: recordsOf(page), more: page.next_cursor !== null }
}

const mostRead = 100

interface Reading {
  signal?: AbortSignal
  /** Is given the first page of a searched list. */
  read?(records: readonly JsonObject[]): void
}

/** The records of a route as what can be chosen: all of them, or of more than a page those that a search finds. */
export async function recordChoices(path: string, by: By, { signal, read }: Reading = {}): Promise<Options | Finder> {
  if (!isSearched(path)) return recordOptions(path, by)
  const { records, more } = await recordsNamed(path, '', { limit: mostRead, signal })
  read?.(records)
  return more ? finderOf(path, by) : optionsOf(records, by)
}

/** Finds records of a searched list by their names. */
export const finderOf = (path: string, by: By): Finder => ({
  async search(text, signal) {
    return optionsOf((await recordsNamed(path, text, { limit: mostRead, signal })).records, by)
  },
  named: (values, signal) =>
    Promise.all(
      values.map((value) =>
        by === 'id'
          ? request<JsonObject>('GET', `${path}/${encodeURIComponent(value)}`, { signal }).then(
              (record) => [value, labelOf(record)] as const,
              () => [value, shortId(value)] as const,
            )
          : ([value, value] as const),
      ),
    ),
})

/** Every record of a route as what can be chosen, for lists that are short. */
export const recordOptions = async (path: string, by: By): Promise<(readonly [string, string])[]> =>
  optionsOf(await everyRecord(path), by)

const labelOf = (row: JsonObject): string =>
  typeof row.email === 'string' ? `${row.name}, ${row.email}` : String(row.name ?? row.id)

/** Of records with the same name, each shows its id too. */
function optionsOf(rows: readonly JsonObject[], by: By): (readonly [string, string])[] {
  const records = rows.map((row) => ({
    value: String(row[by]),
    label: labelOf(row),
  }))
  const times = new Map<string, number>()
  for (const { label } of records) times.set(label, (times.get(label) ?? 0) + 1)
  return records.map(({ value, label }) => [
    value,
    times.get(label) === 1 || by !== 'id' ? label : `${label} (${shortId(value)})`,
  ])
}
