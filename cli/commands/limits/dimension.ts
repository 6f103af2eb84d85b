import { defineCommand } from 'citty'
import { dimensionResource } from '../../../src/usage/attribution/dimension-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const dimension = (terminal: Terminal) =>
  defineCommand({
    meta: { description: dimensionResource.about },
    subCommands: resourceCommands(dimensionResource, terminal),
  })
