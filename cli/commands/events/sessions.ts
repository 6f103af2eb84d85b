/** `events sessions`: sessions of agents, those with the newest request first. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { createApi } from '../../command/api.ts'
import { connectionFlags, findConnection } from '../../command/profile.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { filterFlags } from './filter-flags.ts'

const { client, token, user, team, 'session-id': sessionId } = filterFlags

const pageSchema = z.looseObject({
  sessions: z.array(
    z.looseObject({
      session_id: z.string(),
      client: z.string().nullable(),
      token: z.looseObject({ id: z.string(), name: z.string().nullable() }),
      last_at: z.string(),
      requests: z.number(),
      findings: z.number(),
      errors: z.number(),
      cost: z.number(),
    }),
  ),
  next_cursor: z.string().nullable(),
})

export const sessions = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List sessions of agents, those with the newest request first' },
    args: {
      since: {
        type: 'string',
        required: true,
        description: 'Sessions with a request since then: RFC 3339, or a number and m, h, d or w',
        valueHint: '15m',
      },
      client: { ...client, description: 'Only sessions of this known client, such as claude-code' },
      token: { ...token, description: 'Only sessions of this token' },
      user: { ...user, description: 'Only sessions of this person' },
      team: { ...team, description: 'Only sessions of this team' },
      'session-id': { ...sessionId, description: 'Only sessions of this id' },
      limit: { type: 'string', description: 'Sessions on a page, 1 to 100 (default 100)', valueHint: 'N' },
      cursor: { type: 'string', description: 'Continue after the last page' },
      json: { type: 'boolean', description: 'Print JSON' },
      ...connectionFlags,
    },
    async run({ args }) {
      const { since, client, token, user, team, limit, cursor } = args
      const query = { since, client, token, user, team, session_id: args['session-id'], limit, cursor }
      const api = createApi(findConnection(args, terminal), fetch)
      const page = await api.json({ path: '/v1/events/sessions', query }, pageSchema)
      if (args.json) return terminal.write(`${JSON.stringify(page)}\n`)
      if (page.sessions.length === 0) return terminal.write('No sessions found\n')
      for (const session of page.sessions) {
        const { requests, findings, errors, cost } = session
        const counts = `requests=${requests} findings=${findings} errors=${errors} cost=${cost.toFixed(6)}`
        const who = session.token.name ?? session.token.id
        const cells = [session.last_at, (session.client ?? '-').padEnd(11), session.session_id, who, counts]
        await terminal.write(`${cells.map(printable).join(' ')}\n`)
      }
      if (page.next_cursor !== null) terminal.note(`More: add --cursor ${page.next_cursor}`)
    },
  })
