/** Managed settings as records: what coding agents fetch from a gateway, for everybody or for teams. */
import { z } from 'zod'
import { idParams, refersTo, resource } from '../api/resource.ts'
import { recordName } from '../providers/record-name.ts'

/** What an agent fetches every hour should stay a small file. */
const longestSettings = 256 * 1024

const settings = z
  .record(z.string(), z.unknown())
  .refine(
    (value) => JSON.stringify(value).length <= longestSettings,
    `The settings are longer than ${longestSettings} characters`,
  )
  .describe("The agent's own settings, as in its managed-settings.json; everybody they are for can read them")

const fields = {
  name: recordName.describe('What it is called'),
  settings,
  team_ids: z
    .array(z.uuid())
    .max(100)
    .transform((ids) => [...new Set(ids)])
    .describe('The teams it is for; none: everybody')
    .meta(refersTo('/v1/teams')),
  priority: z.number().int().min(0).max(1_000_000).describe('Of several that fit a person, the lowest number counts'),
}

export const defaultPriority = 100

export const createManagedSettingsBody = z.strictObject({
  ...fields,
  team_ids: fields.team_ids.default([]),
  priority: fields.priority.default(defaultPriority),
})

const updateManagedSettingsBody = z.strictObject(z.object(fields).partial().shape)

const managedSettingsSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  settings: z.record(z.string(), z.unknown()),
  team_ids: z.array(z.string()),
  priority: z.number().int(),
  checksum: z.string().describe('SHA-256 of the settings, as agents compute it: members of each object in order'),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type ManagedSettingsRecord = z.infer<typeof managedSettingsSchema>

export const managedSettingsResource = resource({
  name: 'managed-settings',
  one: 'record of managed settings',
  plural: 'managed_settings',
  path: '/v1/catalog/managed-settings',
  tag: 'Managed settings',
  // They can make a person's computer run commands: for those who manage people.
  access: { read: 'members:read', write: 'members:write' },
  params: idParams,
  about: 'Say what settings coding agents get from the gateway',
  summaries: {
    list: 'List managed settings',
    get: 'Show managed settings',
    create: 'Add managed settings',
    update: 'Change managed settings; agents fetch them at their start and every hour',
    delete: 'Delete managed settings',
  },
  record: managedSettingsSchema,
  create: createManagedSettingsBody,
  update: updateManagedSettingsBody,
  columns: ['id', 'name', 'priority', 'team_ids', 'checksum'],
  flags: { settings: { json: '{"permissions": {"deny": ["WebSearch"]}}' } },
})
