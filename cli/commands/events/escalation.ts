/** `escalation list|get|claim|unclaim|resolve|undo`: requests that wait for a person. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import { getOf, idArgument, listOf, recordPath } from '../../command/resource-commands.ts'
import { readCount, readDuration } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const escalations = {
  plural: 'escalations',
  path: '/v1/escalations',
  columns: ['id', 'status', 'reason_code', 'attempts', 'queued_at', 'expires_at', 'claimed_by', 'resolution'],
  filters: z.object({
    status: z
      .enum(['open', 'queued', 'claimed', 'deciding', 'resolved', 'expired'])
      .describe('Only escalations in this state')
      .optional(),
    since: z.string().describe('RFC 3339, or 15m, 12h, 7d, 4w').optional(),
  }),
  flags: { since: { hint: 'WHEN' } },
  summaries: { list: 'List escalations, the newest first', get: 'Show one escalation' },
}

export const escalationCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Decide requests that wait for a person' },
    subCommands: {
      list: async () => listOf(escalations, terminal),
      get: async () => getOf(escalations, terminal),
      claim: async () => act('claim', 'Claim an escalation, so that others see who works on it', terminal),
      unclaim: async () => act('unclaim', 'Put an escalation back into the queue', terminal),
      resolve: async () => resolve(terminal),
      undo: async () => act('undo', 'Undo your own decision before it takes effect', terminal),
    },
  })

const act = (name: 'claim' | 'unclaim' | 'undo', about: string, terminal: Terminal) =>
  defineCommand({
    meta: { description: about },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      await sendRecord({ method: 'POST', path: `${recordPath(escalations, args.id)}/${name}` }, args, terminal)
    },
  })

const resolve = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Resolve an escalation; the request itself is not sent again' },
    args: {
      ...idArgument,
      allow: { type: 'boolean', description: 'Allow the request' },
      block: { type: 'boolean', description: 'Block the request' },
      note: { type: 'string', description: 'Why, for the record' },
      'grant-once': {
        type: 'string',
        description: 'With --allow: how long the same token may send the same request, once',
        valueHint: '15m',
      },
      'undo-seconds': {
        type: 'string',
        description: 'How many seconds the decision can be undone, at most 60; it takes effect only afterwards',
        valueHint: 'N',
      },
      ...recordFlags,
    },
    async run({ args }) {
      if (args.allow === args.block) throw new Failure('usage', { message: 'Give --allow or --block' })
      const grant = args['grant-once']
      if (grant !== undefined && !args.allow) {
        throw new Failure('usage', {
          message: '--grant-once goes with --allow: only what is allowed can be sent again',
        })
      }
      const undoSeconds = args['undo-seconds']
      const body = {
        resolution: args.allow ? 'allow' : 'block',
        ...(args.note === undefined ? {} : { note: args.note }),
        ...(grant === undefined ? {} : { grant_once_seconds: readDuration('--grant-once', grant) }),
        ...(undoSeconds === undefined ? {} : { undo_seconds: readCount('--undo-seconds', undoSeconds) }),
      }
      await sendRecord({ method: 'POST', path: `${recordPath(escalations, args.id)}/resolve`, body }, args, terminal)
    },
  })
