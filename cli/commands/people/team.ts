/** `team create|list|get|delete|add-member|remove-member|members`. */
import { z } from 'zod'
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
import type { Terminal } from '../../terminal/terminal.ts'

const teamArgument = { team_id: { type: 'positional', description: "The team's id" } } as const
const personArgument = { user_id: { type: 'positional', description: "The person's id" } } as const

export const team = (terminal: Terminal): Group => ({
  about: 'Make teams and say who is in them',
  commands: {
    create: async () => create(terminal),
    list: async () => list(terminal),
    get: async () => get(terminal),
    delete: async () => remove(terminal),
    members: async () => members(terminal),
    'add-member': async () => addMember(terminal),
    'remove-member': async () => removeMember(terminal),
  },
})

const teamPath = (id: string): string => `/v1/teams/${encodeURIComponent(id)}`

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a team',
    args: { name: { type: 'string', required: true, description: 'What it is called' }, ...recordFlags },
    async run(flags) {
      await sendRecord({ method: 'POST', path: '/v1/teams', body: { name: flags.name } }, flags, terminal)
    },
  })

const list = (terminal: Terminal): Leaf =>
  command({
    about: 'List teams',
    args: { ...pageFlags, ...recordFlags },
    async run(flags) {
      const { json } = flags
      const page = await connect(flags, terminal).json({ path: '/v1/teams', query: pageQuery(flags) }, pageSchema)
      await showPage(page, { of: 'teams', fields: ['id', 'name', 'member_count', 'created_at'], json, terminal })
    },
  })

const get = (terminal: Terminal): Leaf =>
  command({
    about: 'Show one team',
    args: { ...teamArgument, ...recordFlags },
    async run(flags) {
      const found = await connect(flags, terminal).json({ path: teamPath(flags.team_id) }, recordSchema)
      await showRecord(found, flags.json, terminal)
    },
  })

const remove = (terminal: Terminal): Leaf =>
  command({
    about: 'Delete a team that has neither members nor tokens in force',
    args: {
      ...teamArgument,
      yes: { type: 'boolean', description: 'Really delete it; there is no way back' },
      ...recordFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat the command with --yes' })
      }
      await sendRecord({ method: 'DELETE', path: teamPath(flags.team_id) }, flags, terminal)
    },
  })

const members = (terminal: Terminal): Leaf =>
  command({
    about: 'List who is in a team',
    args: { ...teamArgument, ...pageFlags, ...recordFlags },
    async run(flags) {
      const { json } = flags
      const request = { path: `${teamPath(flags.team_id)}/members`, query: pageQuery(flags) }
      const page = await connect(flags, terminal).json(request, pageSchema)
      await showPage(page, { of: 'members', fields: ['user_id', 'email', 'name', 'role', 'status'], json, terminal })
    },
  })

const addMember = (terminal: Terminal): Leaf =>
  command({
    about: 'Add a person to a team',
    args: { ...teamArgument, ...personArgument, ...recordFlags },
    async run(flags) {
      const path = `${teamPath(flags.team_id)}/members`
      const request = { method: 'POST', path, body: { user_id: flags.user_id } } as const
      await showRecord(await connect(flags, terminal).json(request, z.looseObject({})), flags.json, terminal)
    },
  })

const removeMember = (terminal: Terminal): Leaf =>
  command({
    about: 'Take a person out of a team',
    args: { ...teamArgument, ...personArgument, ...recordFlags },
    async run(flags) {
      const path = `${teamPath(flags.team_id)}/members/${encodeURIComponent(flags.user_id)}`
      const left = await connect(flags, terminal).json({ method: 'DELETE', path }, z.looseObject({}))
      await showRecord(left, flags.json, terminal)
    },
  })
