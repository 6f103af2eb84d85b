import { defineCommand } from 'citty'
import { managedSettingsResource } from '../../../src/managed-settings/managed-settings-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const managedSettingsCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: managedSettingsResource.about },
    subCommands: resourceCommands(managedSettingsResource, terminal),
  })
