import { defineCommand } from 'citty'
import { budgetResource } from '../../../src/usage/api/budget-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** A budget's scope is a team or a person. */
const owners = ['/v1/teams', '/v1/users']

export const budget = (terminal: Terminal) =>
  defineCommand({
    meta: { description: budgetResource.about },
    subCommands: resourceCommands(budgetResource, terminal, { references: { 'scope.id': owners, scope_id: owners } }),
  })
