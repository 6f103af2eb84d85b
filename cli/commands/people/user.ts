/** `user create|list|get|update`. A password is typed unseen or piped in, never a flag: others can read a command line. */
import { Failure } from '../../../src/failure.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import {
  connect,
  pageFlags,
  pageQuery,
  pageSchema,
  recordFlags,
  recordSchema,
  sendRecord,
  showPage,
  showRecord,
} from '../../command/record.ts'
import { askPassword, type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const roles = 'owner|admin|operator|auditor|member'
const userArgument = { user_id: { type: 'positional', description: "The person's id" } } as const
const passwordFlag = {
  'password-stdin': { type: 'boolean', description: 'Read the password from stdin, one line' },
} as const

export const user = (terminal: Terminal, input: Input = processInput): Group => ({
  about: 'Add people and change what they may do',
  commands: {
    create: async () => create(terminal, input),
    list: async () => list(terminal),
    get: async () => get(terminal),
    update: async () => update(terminal, input),
  },
})

const userPath = (id: string): string => `/v1/users/${encodeURIComponent(id)}`

const create = (terminal: Terminal, input: Input): Leaf =>
  command({
    about: 'Add a person; in a terminal it asks for a password',
    args: {
      email: { type: 'string', required: true, description: 'The e-mail address they sign in with' },
      name: { type: 'string', required: true, description: 'What they are called' },
      role: { type: 'string', description: 'What they may do (default member)', valueHint: roles },
      ...passwordFlag,
      ...recordFlags,
    },
    async run(flags) {
      const { email, name, role } = flags
      const asks = flags['password-stdin'] === true || input.interactive
      const password = asks ? await askPassword(terminal, input) : undefined
      const body = { email, name, role, password }
      const made = await connect(flags, terminal).json({ method: 'POST', path: '/v1/users', body }, recordSchema)
      if (password === undefined)
        terminal.note('They cannot sign in before a password is set: user update --set-password')
      await showRecord(made, flags.json, terminal)
    },
  })

const list = (terminal: Terminal): Leaf =>
  command({
    about: 'List people',
    args: {
      role: { type: 'string', description: 'Only people of this role', valueHint: roles },
      status: { type: 'string', description: 'Only people in this state', valueHint: 'active|disabled' },
      ...pageFlags,
      ...recordFlags,
    },
    async run(flags) {
      const { role, status, json } = flags
      const query = { role, status, ...pageQuery(flags) }
      const page = await connect(flags, terminal).json({ path: '/v1/users', query }, pageSchema)
      await showPage(page, { of: 'users', fields: ['id', 'email', 'name', 'role', 'status'], json, terminal })
    },
  })

const get = (terminal: Terminal): Leaf =>
  command({
    about: 'Show one person',
    args: { ...userArgument, ...recordFlags },
    async run(flags) {
      const found = await connect(flags, terminal).json({ path: userPath(flags.user_id) }, recordSchema)
      await showRecord(found, flags.json, terminal)
    },
  })

const update = (terminal: Terminal, input: Input): Leaf =>
  command({
    about: 'Change a person; a new password or disabling ends their sessions',
    args: {
      ...userArgument,
      name: { type: 'string', description: 'What they are called' },
      role: { type: 'string', description: 'What they may do', valueHint: roles },
      status: { type: 'string', description: 'Whether they may sign in', valueHint: 'active|disabled' },
      'set-password': { type: 'boolean', description: 'Ask for a new password' },
      ...passwordFlag,
      ...recordFlags,
    },
    async run(flags) {
      const { name, role, status } = flags
      const asks = flags['set-password'] === true || flags['password-stdin'] === true
      if (!asks && [name, role, status].every((value) => value === undefined)) {
        throw new Failure('usage', { message: 'Say what to change: --name, --role, --status or --set-password' })
      }
      const password = asks ? await askPassword(terminal, input) : undefined
      const body = { name, role, status, password }
      await sendRecord({ method: 'PATCH', path: userPath(flags.user_id), body }, flags, terminal)
    },
  })
