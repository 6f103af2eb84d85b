/** `usage report`: what requests used in a time, by teams, models, tokens, people and tags, as exact sums. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { csvLine } from '../../../src/events/export/csv.ts'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { columns, dollars, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { filterFlags, filterQuery, filterReferences } from '../events/filter-flags.ts'

const { team, token, user, model, provider } = filterFlags
const filters = { team, token, user, model, provider, 'gateway-id': filterFlags['gateway-id'] }
const named = z.record(z.string(), z.string().nullable())
const count = z.number()
const sums = { requests: count, input_tokens: count, output_tokens: count, cost: count, unpriced: count }

const reportSchema = z.looseObject({
  by: z.array(z.string()),
  rows: z.array(z.looseObject({ group: named, names: named, ...sums })),
  totals: z.looseObject(sums),
})
type Report = z.infer<typeof reportSchema>
type Sums = Report['totals']

export const report = (terminal: Terminal, now: () => number = Date.now) =>
  defineCommand({
    meta: { description: 'Add up what requests used in a month, or since a time, by teams, models and more' },
    args: {
      by: {
        type: 'string',
        repeatable: true,
        default: 'team,model',
        description:
          'What rows are for: team, model, token, user, tag, provider, gateway, client, verdict, day; tag:KEY for one tag; dimension:NAME',
        valueHint: 'LIST',
      },
      month: { type: 'string', description: 'A month in UTC (default: this one)', valueHint: 'YYYY-MM' },
      since: { type: 'string', description: 'Instead of a month: RFC 3339, or 15m, 12h, 7d, 4w', valueHint: 'WHEN' },
      until: { type: 'string', description: 'With --since: up to this instant', valueHint: 'RFC 3339' },
      format: { type: 'enum', options: ['table', 'csv', 'json'], description: 'The format (default table)' },
      ...filters,
      ...recordFlags,
    },
    async run({ args }) {
      const by = args.by.replaceAll('\n', ',')
      const query = { by, ...filterQuery(args), ...windowOf(args, now()) }
      const request = { path: '/v1/usage/report', query, references: filterReferences }
      const answer = await connect(args, terminal).json(request, reportSchema)
      if (args.json || args.format === 'json') return await terminal.write(`${JSON.stringify(answer)}\n`)
      if (args.format === 'csv') return await terminal.write(csvRows(answer).map(csvLine).join(''))
      if (answer.rows.length === 0) return await terminal.write('No requests in this time\n')
      await terminal.write(columns(tableRows(answer), new Set([-4, -3, -2, -1])))
      const { unpriced } = answer.totals
      if (unpriced > 0) terminal.note(`${unpriced} requests are to models without a price: their cost is not counted`)
    },
  })

/** The instants of a month. Throws `usage` for two times, and for what is no month. */
function windowOf(
  { month, since, until }: Readonly<Record<'month' | 'since' | 'until', string | undefined>>,
  now: number,
): { since: string; until?: string | undefined } {
  if (month !== undefined && (since !== undefined || until !== undefined)) {
    throw new Failure('usage', { message: 'Use either --month or --since with --until' })
  }
  if (since !== undefined) return { since, until }
  if (until !== undefined) throw new Failure('usage', { message: '--until goes with --since' })
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month ?? new Date(now).toISOString().slice(0, 7)) ?? []
  if (year === undefined) throw new Failure('usage', { message: '--month takes a month, for example 2026-11' })
  const instant = (months: number) => new Date(Date.UTC(Number(year), Number(number) - 1 + months)).toISOString()
  return { since: instant(0), until: instant(1) }
}

const amounts = ({ requests, input_tokens, output_tokens, cost }: Sums): string[] => [
  ...[requests, input_tokens, output_tokens].map(String),
  dollars(cost),
]

function tableRows({ by, rows, totals }: Report): string[][] {
  const head = [...by.map((dimension) => dimension.toUpperCase()), 'REQUESTS', 'INPUT TOKENS', 'OUTPUT TOKENS', 'USD']
  const body = rows.map((row) => [
    ...by.map((dimension) => printable(row.names[dimension] ?? row.group[dimension] ?? '-')),
    ...amounts(row),
  ])
  return [head, ...body, ['total', ...by.slice(1).map(() => ''), ...amounts(totals)]]
}

/** An id stands beside the name, since names may repeat. */
function csvRows({ by, rows }: Report): string[][] {
  const hasNames = (dimension: string) => ['team', 'token', 'user', 'gateway'].includes(dimension)
  const head = by.flatMap((dimension) => (hasNames(dimension) ? [`${dimension}_id`, dimension] : [dimension]))
  const body = rows.map((row) => [
    ...by.flatMap((dimension) => {
      const value = row.group[dimension] ?? ''
      return hasNames(dimension) ? [value, row.names[dimension] ?? ''] : [value]
    }),
    ...amounts(row),
  ])
  return [[...head, 'requests', 'input_tokens', 'output_tokens', 'cost_usd'], ...body]
}
