/** `access-policy create|list|get|update|delete`. */
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

const policies: Resource = {
  one: 'access policy',
  of: 'access_policies',
  path: '/v1/access-policies',
  fields: ['id', 'name', 'requests_per_minute', 'tokens_per_minute', 'scope', 'models', 'providers'],
}

export const accessPolicy = (terminal: Terminal): Group => ({
  about: 'Limit the tokens that name it: requests and tokens a minute, models, providers',
  commands: {
    create: async () => create(terminal),
    list: async () => listOf(policies, terminal),
    get: async () => getOf(policies, terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(policies, 'Delete an access policy that no token in force names', terminal),
  },
})

const clearable = ['requests_per_minute', 'tokens_per_minute', 'models', 'providers']
const repeatable = ['model', 'provider'] as const
const useFlags = {
  ...rateFlags,
  scope: {
    type: 'string',
    description: 'Who has these rates: each token by itself (token, the default), or all together (shared)',
    valueHint: 'token|shared',
  },
  model: { type: 'string', description: 'A model or * glob that may be used; repeatable' },
  provider: { type: 'string', description: 'A provider that may be used; repeatable', valueHint: 'NAME' },
} as const

/** The models and providers that were named. */
const usesOf = (flags: { readonly [Name in (typeof repeatable)[number]]: string | undefined }) => ({
  models: valuesOf('--model', flags.model),
  providers: valuesOf('--provider', flags.provider),
})

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make an access policy',
    args: { name: { type: 'string', required: true, description: 'What it is called' }, ...useFlags, ...recordFlags },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, ...readRates(flags), scope: flags.scope, ...usesOf(flags) }
      await sendRecord({ method: 'POST', path: policies.path, body }, flags, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change an access policy',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What it is called' },
      ...useFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable: [...repeatable, 'clear'],
    async run(flags) {
      const rates = { ...readRates(flags), scope: flags.scope }
      const body = { name: flags.name, ...rates, ...usesOf(flags), ...clearedFields(flags.clear, clearable) }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(policies, flags.id), body }, flags, terminal)
    },
  })
