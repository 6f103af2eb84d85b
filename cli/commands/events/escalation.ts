/** `escalation list|get|claim|unclaim|resolve`: requests that wait for a person. */
import { Failure } from '../../../src/failure.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { readDuration } from '../../command/duration.ts'
import { connect, pageFlags, pageQuery, pageSchema, recordFlags, sendRecord, showPage } from '../../command/record.ts'
import { getOf, idArgument, type Resource, recordPath } from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const escalations: Resource = {
  one: 'escalation',
  of: 'escalations',
  path: '/v1/escalations',
  fields: ['id', 'status', 'reason_code', 'attempts', 'queued_at', 'expires_at', 'claimed_by', 'resolution'],
}

export const escalationCommands = (terminal: Terminal): Group => ({
  about: 'Decide about requests that wait for a person',
  commands: {
    list: async () => list(terminal),
    get: async () => getOf(escalations, terminal),
    claim: async () => act('claim', 'Take an escalation up, so that others see it', terminal),
    unclaim: async () => act('unclaim', 'Put an escalation back into the queue', terminal),
    resolve: async () => resolve(terminal),
  },
})

const list = (terminal: Terminal): Leaf =>
  command({
    about: 'List escalations, the newest first',
    args: {
      status: { type: 'string', description: 'queued, claimed, resolved or expired', valueHint: 'STATUS' },
      since: { type: 'string', description: 'RFC 3339, or 15m, 12h, 7d, 4w', valueHint: 'WHEN' },
      ...pageFlags,
      ...recordFlags,
    },
    async run(flags) {
      const { status, since, json } = flags
      const call = { path: escalations.path, query: { status, since, ...pageQuery(flags) } }
      const page = await connect(flags, terminal).json(call, pageSchema)
      await showPage(page, { of: escalations.of, fields: escalations.fields, json, terminal })
    },
  })

const act = (name: 'claim' | 'unclaim', about: string, terminal: Terminal): Leaf =>
  command({
    about,
    args: { ...idArgument, ...recordFlags },
    async run(flags) {
      await sendRecord({ method: 'POST', path: `${recordPath(escalations, flags.id)}/${name}` }, flags, terminal)
    },
  })

const resolve = (terminal: Terminal): Leaf =>
  command({
    about: 'Decide about an escalation; nothing is sent again',
    args: {
      ...idArgument,
      allow: { type: 'boolean', description: 'It may be' },
      block: { type: 'boolean', description: 'It may not be' },
      note: { type: 'string', description: 'Why, for the record' },
      'grant-once': {
        type: 'string',
        description: 'With --allow: how long the same token may send the same request, once',
        valueHint: '15m',
      },
      ...recordFlags,
    },
    async run(flags) {
      if (flags.allow === flags.block) throw new Failure('usage', { message: 'Give --allow or --block' })
      const grant = flags['grant-once']
      if (grant !== undefined && !flags.allow) {
        throw new Failure('usage', {
          message: '--grant-once goes with --allow: only what is allowed can be sent again',
        })
      }
      const body = {
        resolution: flags.allow ? 'allow' : 'block',
        ...(flags.note === undefined ? {} : { note: flags.note }),
        ...(grant === undefined ? {} : { grant_once_seconds: readDuration('--grant-once', grant) }),
      }
      await sendRecord({ method: 'POST', path: `${recordPath(escalations, flags.id)}/resolve`, body }, flags, terminal)
    },
  })
