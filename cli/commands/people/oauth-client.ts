import { defineCommand } from 'citty'
import { clientResource } from '../../../src/oauth/clients/client-resource.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const oauthClientCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: clientResource.about },
    subCommands: {
      ...resourceCommands(clientResource, terminal),
      deactivate: () => switchTo('deactivate', 'Stop new authorizations and refreshes of an application', terminal),
      activate: () => switchTo('activate', 'Put an application back into service', terminal),
    },
  })

const switchTo = (what: 'activate' | 'deactivate', description: string, terminal: Terminal) =>
  defineCommand({
    meta: { description },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      await sendRecord({ method: 'POST', path: `${recordPath(clientResource, args.id)}/${what}` }, args, terminal)
    },
  })
