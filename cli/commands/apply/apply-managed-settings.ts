import type { z } from 'zod'
import { createManagedSettingsBody } from '../../../src/managed-settings/managed-settings-resource.ts'
import type { ApplyKind, Changes } from './apply-kind.ts'

const entry = createManagedSettingsBody
type Wanted = z.infer<typeof entry>

/** The schema of an entry is the API's own, and nothing else is to check. */
export const managedSettings: ApplyKind<Wanted> = {
  member: 'managed_settings',
  one: 'record of managed settings',
  path: '/v1/catalog/managed-settings',
  entry,
  check: () => undefined,
  changesOf(wanted, present) {
    const differing = Object.entries(wanted).filter(([field, to]) => !Bun.deepEquals(to, present[field]))
    return Object.fromEntries(differing.map(([field, to]) => [field, { from: present[field], to }]))
  },
  bodyOf: (wanted, changes) => (changes === null ? wanted : changed(changes)),
}

const changed = (changes: Changes) => Object.fromEntries(Object.entries(changes).map(([field, { to }]) => [field, to]))
