import { defineCommand } from 'citty'
import { consumerGroupResource } from '../../../src/usage/api/consumer-group-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const consumerGroup = (terminal: Terminal) =>
  defineCommand({
    meta: { description: consumerGroupResource.about },
    subCommands: resourceCommands(consumerGroupResource, terminal),
  })
