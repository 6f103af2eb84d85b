/** `access-policy create|list|get|update|delete`. */
import { command, type Group, type Leaf } from './command.ts'
import {
  createLimit,
  deleteLimit,
  getLimit,
  idArgument,
  type LimitGroup,
  listLimits,
  listOf,
  rateFlags,
  readRates,
  updateLimit,
} from './limit.ts'
import { recordFlags } from './record.ts'
import type { Terminal } from './terminal.ts'
import { given } from './token-scope.ts'

const policies: LimitGroup = {
  path: '/v1/access-policies',
  plural: 'access_policies',
  word: 'access policy',
  fields: ['id', 'name', 'requests_per_minute', 'tokens_per_minute', 'models', 'providers'],
}

export const accessPolicy = (terminal: Terminal): Group => ({
  about: 'Limit the tokens that name it: requests and tokens a minute, models, providers',
  commands: {
    create: async () => create(terminal),
    list: async () => listLimits(policies, terminal),
    get: async () => getLimit(policies, terminal),
    update: async () => update(terminal),
    delete: async () => deleteLimit(policies, terminal),
  },
})

const repeatable = ['model', 'provider'] as const
const useFlags = {
  ...rateFlags,
  model: { type: 'string', description: 'A model or * glob that may be used; repeatable' },
  provider: { type: 'string', description: 'A provider that may be used; repeatable', valueHint: 'NAME' },
} as const

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make an access policy',
    args: { name: { type: 'string', required: true, description: 'What it is called' }, ...useFlags, ...recordFlags },
    repeatable,
    async run(flags) {
      const { name, model, provider } = flags
      const body = given({ name, ...readRates(flags), models: listOf(model), providers: listOf(provider) })
      await createLimit(policies, body, flags, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change an access policy',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What it is called' },
      ...useFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const { id, name, model, provider } = flags
      const body = given({ name, ...readRates(flags), models: listOf(model), providers: listOf(provider) })
      await updateLimit(policies, id, body, flags, terminal)
    },
  })
