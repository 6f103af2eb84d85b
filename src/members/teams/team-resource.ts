/** Teams as records. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, resource } from '../../api/resource.ts'
import { displayName } from '../people/user-resource.ts'

const teamSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  member_count: z.number().int(),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type Team = z.infer<typeof teamSchema>

const teamBody = z.strictObject({ name: displayName.describe('What it is called') })

export const teamResource = resource({
  name: 'team',
  one: 'team',
  plural: 'teams',
  path: '/v1/teams',
  tag: 'Teams',
  access: { read: 'members:read', write: 'members:write' },
  params: idParams,
  about: 'Manage teams and their members',
  summaries: {
    list: 'List teams, in the order they were made',
    get: 'Show one team',
    create: 'Make a team',
    update: 'Rename a team',
    delete: 'Delete a team that has neither members nor tokens in force',
  },
  record: teamSchema,
  create: teamBody,
  update: teamBody,
  filters: z.strictObject({ name: nameFilter }),
  columns: ['id', 'name', 'member_count', 'created_at'],
})
