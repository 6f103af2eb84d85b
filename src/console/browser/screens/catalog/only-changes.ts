/** What a change of a record sends. */
import type { JsonObject } from '../../parts/forms/schema-form.tsx'

/** What is new, and null for what was taken away. */
export function onlyChanges(before: JsonObject, after: JsonObject): JsonObject {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return Object.fromEntries(
    [...names]
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
      .map((name) => [name, after[name] ?? null]),
  )
}
