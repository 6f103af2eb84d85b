import { defineCommand } from 'citty'
import { teamResource } from '../../../src/members/teams/team-resource.ts'
import { connect, pageFlags, pageQuery, readPage, recordFlags, sendRecord, showPage } from '../../command/record.ts'
import { pathOf } from '../../command/record-names.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const personArgument = {
  user_id: { type: 'positional', required: true, description: "The person's e-mail address or id" },
} as const

export const team = (terminal: Terminal) =>
  defineCommand({
    meta: { description: teamResource.about },
    subCommands: {
      ...resourceCommands(teamResource, terminal),
      members: () => members(terminal),
      'add-member': () => addMember(terminal),
      'remove-member': () => removeMember(terminal),
    },
  })

const members = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List the members of a team' },
    args: { ...idArgument, ...pageFlags, ...recordFlags },
    async run({ args }) {
      const { json } = args
      const request = { path: `${recordPath(teamResource, args.id)}/members`, query: pageQuery(args) }
      const page = await readPage(connect(args, terminal), request, { of: 'members', all: args.all })
      await showPage(page, { of: 'members', fields: ['user_id', 'email', 'name', 'role', 'status'], json, terminal })
    },
  })

const addMember = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Add a person to a team' },
    args: { ...idArgument, ...personArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(teamResource, args.id)}/members`
      await sendRecord(
        { method: 'POST', path, body: { user_id: args.user_id }, references: { user_id: '/v1/users' } },
        args,
        terminal,
      )
    },
  })

const removeMember = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Remove a person from a team' },
    args: { ...idArgument, ...personArgument, ...recordFlags },
    async run({ args }) {
      const path = pathOf(`${recordPath(teamResource, args.id)}/members`, args.user_id)
      await sendRecord({ method: 'DELETE', path }, args, terminal)
    },
  })
