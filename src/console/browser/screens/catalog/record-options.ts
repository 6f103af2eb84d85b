import { request } from '../../api/request.ts'
import { isObject, type JsonObject } from '../../parts/schema-form.tsx'

/** The records of a route as what can be chosen: each by its `value`, called by its `label`. */
export async function recordOptions(
  path: string,
  plural: string,
  value = 'id',
  label = 'name',
): Promise<(readonly [value: string, label: string])[]> {
  const page = await request<JsonObject>('GET', path, { query: { limit: 100 } })
  const rows = page[plural]
  return (Array.isArray(rows) ? rows.filter(isObject) : []).map(
    (row) => [String(row[value]), String(row[label] ?? row[value])] as const,
  )
}
