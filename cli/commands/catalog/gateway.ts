/** `gateway list|get|create|update|delete|bounds`: the records of gateways. `gateway` alone serves one. */

import { z } from 'zod'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { connect, recordFlags, sendRecord } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  linesOf,
  listOf,
  numberOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { valuesOf } from '../limits/limit.ts'

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
    bounds: async () => bounds(terminal),
  },
  otherwise: async () => (await import('../../processes/serve.ts')).gatewayCommand(terminal),
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

const bounds = (terminal: Terminal): Leaf =>
  command({
    about: 'Show or set how many instances a gateway may have, and from where; looked at when one starts',
    args: {
      ...idArgument,
      'max-instances': { type: 'string', description: 'Instances that may have a session at once', valueHint: 'N' },
      address: { type: 'string', description: 'A range they may start from (repeatable)', valueHint: 'CIDR' },
      ...clearFlag,
      ...recordFlags,
    },
    repeatable: ['address', 'clear'],
    async run(flags) {
      const path = `${recordPath(gateway, flags.id)}/bounds`
      const changed = {
        max_instances: numberOf(flags['max-instances'], '--max-instances'),
        addresses: valuesOf('--address', flags.address),
        ...clearedFields(flags.clear, ['max_instances', 'addresses']),
      }
      if (Object.values(changed).every((value) => value === undefined))
        return await sendRecord({ path }, flags, terminal)
      // What is not named stays: the API takes both together.
      const now = await connect(flags, terminal).json({ path }, boundsShape)
      const body = {
        max_instances: changed.max_instances === undefined ? now.max_instances : changed.max_instances,
        addresses: changed.addresses === undefined ? now.addresses : changed.addresses,
      }
      await sendRecord({ method: 'PUT', path, body }, flags, terminal)
    },
  })

const boundsShape = z.looseObject({ max_instances: z.number().nullable(), addresses: z.array(z.string()).nullable() })
