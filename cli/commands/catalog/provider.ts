import { defineCommand } from 'citty'
import { providerResource } from '../../../src/providers/provider-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import type { Input } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { providerStatus } from './provider-status.ts'

export const providerCommands = (terminal: Terminal, input?: Input) =>
  defineCommand({
    meta: { description: providerResource.about },
    subCommands: { ...resourceCommands(providerResource, terminal, { input }), status: providerStatus(terminal) },
  })
