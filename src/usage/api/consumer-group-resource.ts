/** Consumer groups as records: teams, people and tokens that share a rate. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, refersTo, resource } from '../../api/resource.ts'
import { identified, limitName, per, rateFields, rateRecord, versioned } from './limit-fields.ts'

const ids = (meaning: string) => z.array(z.uuid()).max(1000).default([]).describe(meaning)
const membersSchema = z.strictObject({
  teams: ids('A team in it').meta(refersTo('/v1/teams')),
  users: ids('A person in it').meta(refersTo('/v1/users')),
  tokens: ids('A token in it').meta(refersTo('/v1/tokens')),
})

const changed = z.object({ ...rateFields, members: membersSchema.optional() })

export const groupFields = changed.extend({ per: per.unwrap().optional() })

export const consumerGroupResource = resource({
  name: 'consumer-group',
  one: 'consumer group',
  plural: 'consumer_groups',
  path: '/v1/consumer-groups',
  tag: 'Consumer groups',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Limit requests and tokens a minute of teams, people and tokens together',
  summaries: {
    list: 'List consumer groups, in the order they were made',
    get: 'Show one consumer group',
    create: 'Make a consumer group',
    update: 'Change a consumer group; members that are given replace those it has',
    delete: 'Delete a consumer group',
  },
  record: z.object({
    ...identified,
    ...rateRecord,
    members: z.object({ teams: z.array(z.string()), users: z.array(z.string()), tokens: z.array(z.string()) }),
    per: z.string().nullable(),
    ...versioned,
  }),
  create: z.strictObject({ name: limitName, ...rateFields, members: membersSchema, per }),
  update: z.strictObject({ name: limitName.optional(), ...changed.shape }),
  filters: z.strictObject({ name: nameFilter }),
  columns: ['id', 'name', 'requests_per_minute', 'tokens_per_minute'],
  flags: {
    members: { default: {} },
    'members.teams': { name: 'team-id' },
    'members.users': { name: 'user-id' },
    'members.tokens': { name: 'token-id' },
  },
})
