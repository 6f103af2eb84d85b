/** `gateway list|get|create|update|delete`: the records of gateways. `gateway` alone serves one. */

import { command, type Group, type Leaf } from './command.ts'
import { recordFlags, sendRecord } from './record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  linesOf,
  listOf,
  type Resource,
  recordPath,
  requireChange,
} from './resource.ts'
import type { Terminal } from './terminal.ts'

const gateway: Resource = {
  one: 'gateway',
  of: 'gateways',
  path: '/v1/gateways',
  fields: ['id', 'name', 'spend_owner', 'prompt_caching', 'providers'],
}

const clearable = ['spend_owner', 'providers']

const fieldFlags = {
  'spend-owner': {
    type: 'string',
    description: 'Whose spend its requests are',
    valueHint: 'organization|team:UUID|user:UUID',
  },
  'prompt-caching': { type: 'boolean', description: 'cache_control is translated for the provider' },
  provider: { type: 'string', description: 'A provider it may use (repeatable; default all)', valueHint: 'NAME' },
} as const

const repeatable = ['provider', 'clear']

export const gatewayCommands = (terminal: Terminal): Group => ({
  about: 'Serve the gateway only; keep the records of gateways',
  commands: {
    list: async () => listOf(gateway, terminal),
    get: async () => getOf(gateway, terminal),
    create: async () => create(terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(gateway, 'Delete a gateway to which no token in force is bound', terminal),
  },
  otherwise: async () => (await import('./serve.ts')).gatewayCommand(terminal),
})

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make the record of a gateway, to which a runtime token is then bound',
    args: {
      name: { type: 'string', required: true, description: 'What it is called' },
      ...fieldFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      await sendRecord(
        { method: 'POST', path: gateway.path, body: { name: flags.name, ...fieldsOf(flags) } },
        flags,
        terminal,
      )
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change the record of a gateway',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What it is called' },
      ...fieldFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, ...fieldsOf(flags), ...clearedFields(flags.clear, clearable) }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(gateway, flags.id), body }, flags, terminal)
    },
  })

const fieldsOf = (flags: {
  'spend-owner'?: string | undefined
  'prompt-caching'?: boolean | undefined
  provider?: string | undefined
}) => ({
  spend_owner: flags['spend-owner'],
  prompt_caching: flags['prompt-caching'],
  providers: linesOf(flags.provider),
})
