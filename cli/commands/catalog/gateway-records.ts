/** The commands about records of gateways, and about their bounds. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { gatewayResource } from '../../../src/providers/catalog/gateway-resource.ts'
import { connect, recordFlags, sendRecord } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  idArgument,
  recordPath,
  resourceCommands,
} from '../../command/resource-commands.ts'
import { readCount, readList } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const gatewayRecords = (terminal: Terminal) => ({
  ...resourceCommands(gatewayResource, terminal, {
    references: { spend_owner: { byPrefix: { 'team:': '/v1/teams', 'user:': '/v1/users' } } },
  }),
  delete: () => deleteOf(gatewayResource, terminal),
  bounds: () => bounds(terminal),
})

const bounds = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description: 'Show or set how many instances a gateway may have, and from where; checked when one starts',
    },
    args: {
      ...idArgument,
      'max-instances': { type: 'string', description: 'Instances that may have a session at once', valueHint: 'N' },
      address: {
        type: 'string',
        repeatable: true,
        description: 'A range they may start from (repeatable)',
        valueHint: 'CIDR',
      },
      ...clearFlag(['max-instances', 'addresses']),
      ...recordFlags,
    },
    async run({ args }) {
      const path = `${recordPath(gatewayResource, args.id)}/bounds`
      const { 'max-instances': most, address } = args
      const changed = {
        max_instances: most === undefined ? undefined : readCount('--max-instances', most),
        addresses: address === undefined ? undefined : readList('--address', address),
        ...clearedFields(args.clear),
      }
      if (Object.values(changed).every((value) => value === undefined)) {
        return await sendRecord({ path }, args, terminal)
      }
      // What is not named stays: the API takes both together.
      const now = await connect(args, terminal).json({ path }, boundsShape)
      const body = {
        max_instances: changed.max_instances === undefined ? now.max_instances : changed.max_instances,
        addresses: changed.addresses === undefined ? now.addresses : changed.addresses,
      }
      await sendRecord({ method: 'PUT', path, body }, args, terminal)
    },
  })

const boundsShape = z.looseObject({ max_instances: z.number().nullable(), addresses: z.array(z.string()).nullable() })
