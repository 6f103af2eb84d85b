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
        async () => (list.path === '/v1/tokens' ? tokens : recordOptions(list.path, list.by)),
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

/** The records of a route as what can be chosen. Of those with the same name, each shows its id too. */
export async function recordOptions(path: string, by: 'id' | 'name' | 'email'): Promise<(readonly [string, string])[]> {
  const records = (await everyRecord(path)).map((row) => ({
    value: String(row[by]),
    label: typeof row.email === 'string' ? `${row.name}, ${row.email}` : String(row.name ?? row.id),
  }))
  const times = new Map<string, number>()
  for (const { label } of records) times.set(label, (times.get(label) ?? 0) + 1)
  return records.map(({ value, label }) => [
    value,
    times.get(label) === 1 || by !== 'id' ? label : `${label} (${shortId(value)})`,
  ])
}
