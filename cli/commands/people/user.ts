/** The commands about people. A password is typed unseen or piped in, never a flag: others can read a command line. */
import { defineCommand } from 'citty'
import { userResource } from '../../../src/members/people/user-resource.ts'
import { resourceCommands } from '../../command/resource-commands.ts'
import { askPassword, type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const passwordFlag = {
  'password-stdin': { type: 'boolean', description: 'Read the password from stdin, one line' },
} as const
const askedPasswordFlag = {
  'password-stdin': { type: 'boolean', description: 'Read the password from stdin, one line; a terminal asks for it' },
} as const
const setFlag = { 'set-password': { type: 'boolean', description: 'Ask for a new password' } } as const

export const user = (terminal: Terminal, input: Input = processInput) =>
  defineCommand({
    meta: { description: userResource.about },
    subCommands: resourceCommands(userResource, terminal, {
      create: {
        args: askedPasswordFlag,
        async read(args) {
          if (args['password-stdin'] === true || input.interactive) {
            return { password: await askPassword(terminal, input) }
          }
          terminal.note('They cannot sign in before a password is set: user update --set-password')
          return {}
        },
      },
      update: {
        args: { ...setFlag, ...passwordFlag },
        async read(args) {
          const asks = args['set-password'] === true || args['password-stdin'] === true
          return asks ? { password: await askPassword(terminal, input) } : {}
        },
      },
    }),
  })
