import { defineCommand } from 'citty'
import { modelResource } from '../../../src/providers/catalog/model-resource.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const modelCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: modelResource.about },
    subCommands: { ...resourceCommands(modelResource, terminal), price: () => price(terminal) },
  })

const price = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description: 'Show what a model costs and where its price comes from, whether the catalog lists it or not',
    },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      await sendRecord({ path: `${recordPath(modelResource, args.id)}/price` }, args, terminal)
    },
  })
