import { defineCommand } from 'citty'
import { identityProviderResource } from '../../../src/members/identity-providers/identity-provider-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const identityProviderCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: identityProviderResource.about },
    subCommands: resourceCommands(identityProviderResource, terminal),
  })
