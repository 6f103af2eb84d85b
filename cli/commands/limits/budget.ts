import { defineCommand } from 'citty'
import { budgetResource } from '../../../src/usage/api/budget-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const budget = (terminal: Terminal) =>
  defineCommand({
    meta: { description: budgetResource.about },
    subCommands: resourceCommands(budgetResource, terminal),
  })
