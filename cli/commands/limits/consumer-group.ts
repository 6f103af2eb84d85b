/** `consumer-group create|list|get|update|delete`. */
import { command, type Group, type Leaf } from '../../command/command.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  listOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { rateFlags, readRates, valuesOf } from './limit.ts'

const groups: Resource = {
  one: 'consumer group',
  of: 'consumer_groups',
  path: '/v1/consumer-groups',
  fields: ['id', 'name', 'requests_per_minute', 'tokens_per_minute'],
}

export const consumerGroup = (terminal: Terminal): Group => ({
  about: 'Limit requests and tokens a minute of teams, people and tokens together',
  commands: {
    create: async () => create(terminal),
    list: async () => listOf(groups, terminal),
    get: async () => getOf(groups, terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(groups, 'Delete a consumer group', terminal),
  },
})

const clearable = ['requests_per_minute', 'tokens_per_minute']
const repeatable = ['team-id', 'user-id', 'token-id'] as const
const memberFlags = {
  'team-id': { type: 'string', description: 'A team in it; repeatable', valueHint: 'UUID' },
  'user-id': { type: 'string', description: 'A person in it; repeatable', valueHint: 'UUID' },
  'token-id': { type: 'string', description: 'A token in it; repeatable', valueHint: 'UUID' },
} as const

/** The members that were named; undefined where none were. */
function membersOf(flags: { readonly [Name in (typeof repeatable)[number]]: string | undefined }) {
  const teams = valuesOf('--team-id', flags['team-id'])
  const users = valuesOf('--user-id', flags['user-id'])
  const tokens = valuesOf('--token-id', flags['token-id'])
  if (teams === undefined && users === undefined && tokens === undefined) return undefined
  return { teams: teams ?? [], users: users ?? [], tokens: tokens ?? [] }
}

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a consumer group',
    args: {
      name: { type: 'string', required: true, description: 'What it is called' },
      ...rateFlags,
      ...memberFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, ...readRates(flags), members: membersOf(flags) ?? {} }
      await sendRecord({ method: 'POST', path: groups.path, body }, flags, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change a consumer group; members that are given replace those it has',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What it is called' },
      ...rateFlags,
      ...memberFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable: [...repeatable, 'clear'],
    async run(flags) {
      const cleared = clearedFields(flags.clear, clearable)
      const body = { name: flags.name, ...readRates(flags), members: membersOf(flags), ...cleared }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(groups, flags.id), body }, flags, terminal)
    },
  })
