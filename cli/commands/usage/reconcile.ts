/** `usage reconcile`: a provider's invoice beside what was booked, with each difference named. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { csvLine } from '../../../src/events/export/csv.ts'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags } from '../../command/record.ts'
import { readNumber } from '../../command/values.ts'
import { columns, dollars, printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const amounts = z
  .looseObject({
    cost: z.number().nullable(),
    input_tokens: z.number().nullable(),
    output_tokens: z.number().nullable(),
  })
  .nullable()
type Amounts = z.infer<typeof amounts>

const difference = z.looseObject({
  kind: z.string(),
  day: z.string().nullable(),
  model: z.string().nullable(),
  invoiced: amounts,
  booked: amounts,
})
const reportSchema = z.looseObject({
  form: z.string(),
  month: z.string(),
  lines: z.number(),
  other_months: z.number(),
  invoiced: amounts,
  booked: amounts,
  alike: z.number(),
  differences: z.array(difference),
  left_out: z.number(),
})
type Report = z.infer<typeof reportSchema>

export const reconcile = (terminal: Terminal, readInput = () => Bun.stdin.text()) =>
  defineCommand({
    meta: { description: "Compare a provider's invoice, a CSV file, with what was booked, and name the differences" },
    args: {
      file: { type: 'positional', required: true, description: 'The CSV file of OpenAI or Anthropic, or - for stdin' },
      month: { type: 'string', required: true, description: 'The month of the invoice, in UTC', valueHint: 'YYYY-MM' },
      provider: { type: 'string', required: true, description: 'The name of the provider here', valueHint: 'NAME' },
      'tolerance-percent': {
        type: 'string',
        description: 'No difference up to so many percent is named (default 1)',
        valueHint: 'N',
      },
      tolerance: {
        type: 'string',
        description: 'No difference up to so many US dollars is named (default 0.01)',
        valueHint: 'USD',
      },
      format: { type: 'enum', options: ['table', 'csv', 'json'], description: 'The format (default table)' },
      ...recordFlags,
    },
    async run({ args }) {
      const body = {
        ...{ month: args.month, provider: args.provider, csv: await readFile(args.file, readInput) },
        tolerance_percent: numberOf('--tolerance-percent', args['tolerance-percent']),
        tolerance: numberOf('--tolerance', args.tolerance),
      }
      const request = { method: 'POST', path: '/v1/usage/reconciliation', body } as const
      const report = await connect(args, terminal).json(request, reportSchema)
      if (args.json || args.format === 'json') return await terminal.write(`${JSON.stringify(report)}\n`)
      if (args.format === 'csv') return await terminal.write(csvRows(report).map(csvLine).join(''))
      if (report.differences.length > 0) await terminal.write(columns(tableRows(report)))
      for (const line of summaryOf(report)) terminal.note(line)
    },
  })

async function readFile(path: string, readInput: () => Promise<string>): Promise<string> {
  if (path === '-') return await readInput()
  try {
    return await Bun.file(path).text()
  } catch (cause) {
    throw new Failure('usage', { message: `${path} cannot be read: name the CSV file of the provider`, cause })
  }
}

const numberOf = (flag: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : readNumber(flag, text)

const kinds: Readonly<Record<string, string>> = {
  only_invoiced: 'only on the invoice',
  only_booked: 'only booked here',
  price: 'another price',
  tokens: 'other tokens',
  amount: 'another amount',
}

function shown(of: Amounts): string {
  if (of === null) return 'nothing'
  if (of.cost !== null) return `${dollars(of.cost)} USD`
  if (of.input_tokens === null && of.output_tokens === null) return 'nothing'
  return `${of.input_tokens ?? 0} + ${of.output_tokens ?? 0} tokens`
}

function tableRows({ differences }: Report): string[][] {
  return [
    ['DIFFERENCE', 'DAY', 'MODEL', 'INVOICE', 'BOOKED'],
    ...differences.map(({ kind, day, model, invoiced, booked }) => [
      ...[kinds[kind] ?? kind, day ?? '-', printable(model ?? '-')],
      ...[shown(invoiced), shown(booked)],
    ]),
  ]
}

const csvRows = ({ differences }: Report): (string | number | null)[][] => [
  [
    ...['kind', 'day', 'model', 'invoiced_usd', 'invoiced_input_tokens', 'invoiced_output_tokens'],
    ...['booked_usd', 'booked_input_tokens', 'booked_output_tokens'],
  ],
  ...differences.map(({ kind, day, model, invoiced, booked }) => [
    ...[kind, day, model],
    ...[invoiced, booked].flatMap((of) => [of?.cost ?? null, of?.input_tokens ?? null, of?.output_tokens ?? null]),
  ]),
]

function summaryOf({ form, month, lines, other_months, invoiced, booked, alike, left_out }: Report): string[] {
  const others = other_months > 0 ? `; ${other_months} lines of other months were left out` : ''
  return [
    `Read as ${form}: ${lines} lines of ${month}${others}`,
    `On the invoice: ${shown(invoiced)}; booked here: ${shown(booked)}; ${alike} pairs of a day and a model are alike`,
    ...(left_out > 0 ? [`${left_out} more differences are not listed: take a larger tolerance`] : []),
  ]
}
