/** `alert list|get|create|update|delete|test|history`: what is watched, and what was found. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { alertResource } from '../../../src/alerts/alert-resource.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { idArgument, listOf, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import { columns, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const history = {
  plural: 'alert_firings',
  path: '/v1/alert-firings',
  columns: ['fired_at', 'resolved_at', 'severity', 'alert', 'about'],
  filters: z.object({
    state: z.enum(['open', 'resolved']).describe('Only what still holds, or only what is over').optional(),
    alert_id: z.uuid().describe('Only what this alert found').optional(),
  }),
  summaries: { list: 'List what alerts have found, the newest first' },
}

/** By the kind of an alert's scope, where what it names is listed; the API knows providers and models by their names. */
const lists = { team: '/v1/teams', gateway: '/v1/gateways', budget: '/v1/budgets', token: '/v1/tokens' }

export const alertCommands = (terminal: Terminal) =>
  defineCommand({
    meta: { description: alertResource.about },
    subCommands: {
      ...resourceCommands(alertResource, terminal, { references: { 'scope.id': { byField: 'scope.kind', lists } } }),
      history: async () => listOf(history, terminal),
      test: async () => test(terminal),
    },
  })

const found = z.object({
  known: z.boolean(),
  measured: z.array(
    z.object({ subject: z.string(), value: z.number(), reached: z.array(z.number()), about: z.string() }),
  ),
})

const test = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Measure an alert now, and say what it finds; nothing is sent' },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(alertResource, args.id)}/test`
      const answer = await connect(args, terminal).json({ method: 'POST', path, body: {} }, found)
      if (args.json) return await terminal.write(`${JSON.stringify(answer)}\n`)
      if (!answer.known) return terminal.note('It cannot be measured now')
      if (answer.measured.length === 0) return terminal.note('It finds nothing')
      const rows = answer.measured.map(({ value, reached, about }) => [
        reached.length === 0 ? 'below' : `reached ${reached.join(', ')}`,
        String(Math.round(value * 100) / 100),
        printable(about),
      ])
      await terminal.write(`${columns([['THRESHOLD', 'VALUE', 'ABOUT'], ...rows])}\n`)
    },
  })
