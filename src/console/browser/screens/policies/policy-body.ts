/** A policy as the body that makes it. */
import type { PolicyRecord } from '../../api/routes.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'

const ownPlaces = ['name', 'kind', 'stages', 'config', 'when', 'targets', 'mode', 'enabled', 'when_broken', 'order']

/** A record as the body that would make it. */
export const bodyOf = (record: PolicyRecord): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => ownPlaces.includes(name)))
