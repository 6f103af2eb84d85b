/**
 * The versions of a policy, made from the events of its changes: each event says what every changed field was before and
 * after, so the present version leads back to the first. Where older events are no longer kept, the list ends there.
 */
import type { Event, PolicyRecord } from '../../api/routes.ts'
import { isObject } from '../../json-object.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { bodyOf } from './policy-body.ts'

export interface PolicyVersion {
  /** The change that made it; null for the oldest that is known, where what made it is no longer kept. */
  event: Event | null
  /** The policy's fields from then on. */
  body: JsonObject
  changes: readonly { field: string; before: unknown; after: unknown }[]
}

/** The newest first. `events`: the changes of this policy, the newest first. */
export function versionsOf(record: PolicyRecord, events: readonly Event[]): PolicyVersion[] {
  const versions: PolicyVersion[] = []
  let body = bodyOf(record)
  for (const event of events) {
    if (event.event_type === 'policy.created') {
      versions.push({ event, body, changes: [] })
      return versions
    }
    const changes = changesOf(event)
    if (changes.length === 0) continue
    versions.push({ event, body, changes })
    body = { ...body, ...Object.fromEntries(changes.map(({ field, before }) => [field, before])) }
  }
  return [...versions, { event: null, body, changes: [] }]
}

function changesOf({ event_type, details }: Event): PolicyVersion['changes'] {
  const changes = event_type === 'policy.updated' ? details?.changes : undefined
  if (!isObject(changes)) return []
  return Object.entries(changes).flatMap(([field, change]) =>
    isObject(change) ? [{ field, before: change.from, after: change.to }] : [],
  )
}

/** What differs between two values, one line for each part: `types: email, card → email`. */
export function differencesIn(before: unknown, after: unknown, path = ''): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (isObject(before) && isObject(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
      differencesIn(before[name], after[name], path === '' ? name : `${path}.${name}`),
    )
  }
  return [`${path === '' ? '' : `${path}: `}${written(before)} → ${written(after)}`]
}

function written(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ') || 'nothing'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
