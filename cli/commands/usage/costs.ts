/** `usage costs`: what a month costs by one or two dimensions, with its forecast and the month before. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { connect, recordFlags } from '../../command/record.ts'
import { writeBody } from '../../command/stream.ts'
import { columns, dollars, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const sums = z.looseObject({
  requests: z.number(),
  cost: z.number(),
  previous_cost: z.number(),
  previous_cost_to_date: z.number(),
  forecast: z.number(),
})
const costsSchema = z.looseObject({
  by: z.array(z.string()),
  rows: z.array(sums.extend({ names: z.record(z.string(), z.string().nullable()) })),
  left_out: z.number(),
  totals: sums,
})

export const costs = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show what a month costs by one or two dimensions, its forecast and the month before' },
    args: {
      by: {
        type: 'string',
        description:
          'One or two of team, provider, model, token, gateway, user and dimension:NAME (default team,model); not with focus',
        valueHint: 'LIST',
      },
      month: { type: 'string', description: 'A month in UTC (default: this one)', valueHint: 'YYYY-MM' },
      format: {
        type: 'enum',
        options: ['table', 'csv', 'focus', 'json'],
        description: 'The format (default table); focus: every charge day by day, with the columns of FOCUS 1.2',
      },
      ...recordFlags,
    },
    async run({ args: { by, month, format, ...flags } }) {
      const api = connect(flags, terminal)
      if (!flags.json && (format === 'csv' || format === 'focus')) {
        const answer = await api.response({ path: '/v1/usage/costs/export', query: { by, month, format } })
        return await writeBody(answer, terminal)
      }
      const report = await api.json({ path: '/v1/usage/costs', query: { by, month } }, costsSchema)
      if (flags.json || format === 'json') return await terminal.write(`${JSON.stringify(report)}\n`)
      if (report.rows.length === 0) return await terminal.write('Nothing was spent in this month\n')
      await terminal.write(columns(tableRows(report), new Set([-5, -4, -3, -2, -1])))
      if (report.left_out > 0) terminal.note(`${report.left_out} more rows are in --format csv`)
    },
  })

const amounts = ({
  requests,
  cost,
  previous_cost_to_date,
  previous_cost,
  forecast,
}: z.infer<typeof sums>): string[] => [
  String(requests),
  ...[cost, previous_cost_to_date, previous_cost, forecast].map(dollars),
]

function tableRows({ by, rows, totals }: z.infer<typeof costsSchema>): string[][] {
  const head = ['REQUESTS', 'USD', 'MONTH BEFORE TO DATE', 'MONTH BEFORE', 'FORECAST']
  return [
    [...by.map((dimension) => dimension.toUpperCase()), ...head],
    ...rows.map((row) => [...by.map((dimension) => printable(row.names[dimension] ?? '-')), ...amounts(row)]),
    ['total', ...by.slice(1).map(() => ''), ...amounts(totals)],
  ]
}
