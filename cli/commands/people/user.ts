/** The commands about people. A password is typed unseen or piped in, never a flag: others can read a command line. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { userResource } from '../../../src/members/people/user-resource.ts'
import { connect, recordFlags, sendRecord } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import { confirm } from '../../terminal/confirm.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import { askPassword } from '../../terminal/password.ts'
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
    subCommands: {
      invite: () => invite(terminal),
      'remove-second-factor': () => removeSecondFactor(terminal),
      unlink: () => unlink(terminal),
      ...resourceCommands(userResource, terminal, {
        create: {
          args: askedPasswordFlag,
          async read(args) {
            if (args['password-stdin'] === true || input.interactive) {
              return { password: await askPassword(terminal, input) }
            }
            return {}
          },
          done({ password }) {
            if (password !== undefined) return
            terminal.note('They cannot sign in before a password is set: user invite makes a link for that')
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
    },
  })

const invitationSchema = z.looseObject({ invitation_url: z.string(), expires_at: z.string() })

const invite = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Make a link with which a person sets their own password, once; prints it to stdout' },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(userResource, args.id)}/invitation`
      const made = await connect(args, terminal).json({ method: 'POST', path, body: {} }, invitationSchema)
      terminal.note(`It works once, until ${made.expires_at}. Give it to this person alone`)
      await terminal.write(args.json ? `${JSON.stringify(made)}\n` : `${made.invitation_url}\n`)
    },
  })

const removeSecondFactor = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Take the second factor off an account whose authenticator app is lost; its sessions end' },
    args: {
      ...idArgument,
      yes: { type: 'boolean', description: 'Confirm: a password alone is enough then' },
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, `A password alone is enough for ${args.id} then`, terminal)
      const path = `${recordPath(userResource, args.id)}/second-factor`
      await sendRecord({ method: 'DELETE', path }, args, terminal)
    },
  })

const unlink = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Unlink an account from all identity providers; the sessions that came of them end' },
    args: {
      ...idArgument,
      yes: { type: 'boolean', description: 'Confirm: the person cannot sign in there to this account' },
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, `${args.id} cannot sign in by identity providers then`, terminal)
      await sendRecord({ method: 'DELETE', path: `${recordPath(userResource, args.id)}/identities` }, args, terminal)
    },
  })
