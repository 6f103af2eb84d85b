import type { JsonSchema } from '../../api/description.ts'
import { everyPage } from '../../api/every-page.ts'
import { request } from '../../api/request.ts'
import { isObject } from '../../json-object.ts'
import type { JsonObject, Options } from '../../parts/forms/schema-form.tsx'

/** For each member of a body that names records of another kind, by the member's name: reads those that there are. */
export function recordReaders(schema: JsonSchema): Readonly<Record<string, () => Promise<Options>>> {
  const members = Object.entries(schema.properties ?? {}).map(([name, part]) => {
    const reference = [part, ...(part.anyOf ?? [])].flatMap(({ 'x-record': found }) => found ?? []).at(0)
    return reference === undefined ? recordReaders(part) : { [name]: () => recordOptions(reference.path, reference.by) }
  })
  return Object.assign({}, ...members)
}

/** The records of a page: its one list. */
export const recordsOf = (page: JsonObject): JsonObject[] =>
  (Object.values(page).find(Array.isArray) ?? []).filter(isObject)

/** Every record of a route. */
export const everyRecord = (path: string, signal?: AbortSignal): Promise<JsonObject[]> =>
  everyPage((query) => request<JsonObject & { next_cursor: string | null }>('GET', path, { query, signal }), recordsOf)

/** The records of a route as what can be chosen. */
export async function recordOptions(path: string, by: 'id' | 'name' | 'email'): Promise<(readonly [string, string])[]> {
  const records = await everyRecord(path)
  return records.map((row) => [String(row[by]), String(row.email ?? row.name ?? row.id)] as const)
}
