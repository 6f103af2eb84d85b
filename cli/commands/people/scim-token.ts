/** `scim-token`: the tokens by which identity providers keep people and groups here. */
import { defineCommand } from 'citty'
import { scimTokens } from '../../../src/members/scim/scim-token-resource.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { deleteOf, listOf } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const scimTokenCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Let an identity provider keep people and groups here by SCIM' },
    subCommands: {
      list: () => listOf(scimTokens, terminal),
      create: () => create(terminal),
      revoke: () => deleteOf(scimTokens, terminal),
    },
  })

const create = (terminal: Terminal) =>
  defineCommand({
    meta: { description: scimTokens.summaries.create },
    args: {
      'identity-provider-id': {
        ...{ type: 'string', required: true, valueHint: 'NAME|UUID' },
        description: 'The identity provider whose people and groups it manages',
      },
      name: { type: 'string', required: true, description: 'What it is called', valueHint: 'TEXT' },
      ...recordFlags,
    },
    async run({ args }) {
      const body = { identity_provider_id: args['identity-provider-id'], name: args.name }
      await sendRecord(
        { method: 'POST', path: scimTokens.path, body, references: { identity_provider_id: '/v1/identity-providers' } },
        args,
        terminal,
      )
    },
  })
