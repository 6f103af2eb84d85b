import { defineCommand } from 'citty'
import { accessPolicyResource } from '../../../src/usage/api/access-policy-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const accessPolicy = (terminal: Terminal) =>
  defineCommand({
    meta: { description: accessPolicyResource.about },
    subCommands: resourceCommands(accessPolicyResource, terminal),
  })
