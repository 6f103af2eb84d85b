/**
 * Reads the CSV files in which providers say what they charge. Which file it is follows from its header:
 *
 *  OpenAI     the export of costs (`amount_value`, by `line_item` where it was grouped so), costs by model (`cost_usd`,
 *             with tokens where it has them), usage by model
 *  Anthropic  the export of costs (`token_type`, `cost_usd`), and that of usage (`usage_input_tokens_no_cache`)
 *
 * Files of usage have tokens and no money; those are compared by tokens.
 */
import { Failure } from '../../failure.ts'

export interface InvoiceLine {
  /** `2026-11-23`; null where the file has no days. */
  day: string | null
  /** As the file names it; null for what belongs to no model. */
  model: string | null
  /** US dollars; null in a file of usage. */
  cost: number | null
  inputTokens: number | null
  outputTokens: number | null
}

export interface Invoice {
  form: string
  lines: InvoiceLine[]
}

type Row = Readonly<Record<string, string>>

interface Form {
  name: string
  /** The columns by which it is known. */
  has: readonly string[]
  line(row: Row): InvoiceLine
}

const none = { inputTokens: null, outputTokens: null }

const forms: readonly Form[] = [
  {
    name: 'Anthropic usage',
    has: ['model_version', 'usage_input_tokens_no_cache', 'usage_output_tokens'],
    line: (row) => ({
      ...{ day: dayOf(row), model: row.model_version || null, cost: null },
      inputTokens: sumOf(row, [
        'usage_input_tokens_no_cache',
        'usage_input_tokens_cache_write_5m',
        'usage_input_tokens_cache_write_1h',
        'usage_input_tokens_cache_read',
      ]),
      outputTokens: sumOf(row, ['usage_output_tokens']),
    }),
  },
  {
    name: 'Anthropic costs',
    has: ['model', 'token_type', 'cost_usd'],
    line: (row) => ({ day: dayOf(row), model: row.model || null, cost: sumOf(row, ['cost_usd']), ...none }),
  },
  {
    name: 'OpenAI costs',
    has: ['amount_value'],
    // `gpt-4o-2024-08-06, input`: the model, and what of it is charged.
    line: (row) => ({
      ...{ day: dayOf(row), model: row.line_item?.split(',')[0]?.trim() || row.model || null },
      ...{ cost: sumOf(row, ['amount_value']), ...none },
    }),
  },
  {
    name: 'OpenAI costs by model',
    has: ['model', 'cost_usd'],
    line: (row) => ({
      ...{ day: dayOf(row), model: row.model || null, cost: sumOf(row, ['cost_usd']) },
      inputTokens: row.input_tokens === undefined ? null : sumOf(row, ['input_tokens']),
      outputTokens: row.output_tokens === undefined ? null : sumOf(row, ['output_tokens']),
    }),
  },
  {
    name: 'OpenAI usage',
    has: ['model', 'num_model_requests', 'input_tokens', 'output_tokens'],
    line: (row) => ({
      ...{ day: dayOf(row), model: row.model || null, cost: null },
      ...{ inputTokens: sumOf(row, ['input_tokens']), outputTokens: sumOf(row, ['output_tokens']) },
    }),
  },
]

const mostLines = 500_000

/** Throws `invalid_parameter`, which names the line, for a file that is none of these. */
export function readInvoice(text: string): Invoice {
  const [header, ...records] = readCsv(text.replace(/^\uFEFF/, ''))
  const names = (header ?? []).map((name) => name.trim().toLowerCase())
  const form = forms.find(({ has }) => has.every((name) => names.includes(name)))
  if (form === undefined) {
    throw refusal(`The first line is not that of a known file: ${forms.map(({ name }) => name).join(', ')}`)
  }
  if (records.length > mostLines) throw refusal(`The file has more than ${mostLines} lines: send a shorter time`)
  return {
    form: form.name,
    lines: records.map((fields, index) => {
      if (fields.length !== names.length) {
        throw refusal(`Line ${index + 2} has ${fields.length} fields, and the first line ${names.length}`)
      }
      try {
        const row = Object.fromEntries(names.map((name, place) => [name, fields[place] ?? '']))
        requireDollars(row)
        return form.line(row)
      } catch (error) {
        if (error instanceof Failure) throw refusal(`Line ${index + 2}: ${error.message}`)
        throw error
      }
    }),
  }
}

const refusal = (message: string): Failure => new Failure('invalid_parameter', { param: 'csv', message })

/** What is booked is in US dollars, and no rate is known here. */
function requireDollars({ amount_currency: currency = '' }: Row): void {
  const name = currency.trim().toUpperCase()
  if (name !== '' && name !== 'USD') throw refusal(`amount_currency is ${name}: only amounts in USD can be compared`)
}

/** The day of a row, in UTC: of a date, of a time with its zone, or of seconds since the epoch. */
function dayOf(row: Row): string | null {
  const text = [row.usage_date_utc, row.start_time_iso, row.start_time, row.date].find((value) => value) ?? ''
  if (text === '') return null
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return text
  const at = /^\d{9,11}$/.test(text) ? Number(text) * 1000 : Date.parse(text)
  if (Number.isNaN(at)) throw refusal('the date cannot be read')
  return new Date(at).toISOString().slice(0, 10)
}

function sumOf(row: Row, names: readonly string[]): number {
  return names.reduce((sum, name) => {
    const text = (row[name] ?? '').trim()
    const value = Number(text)
    if (!Number.isFinite(value)) throw refusal(`${name} is no number`)
    return sum + value
  }, 0)
}

/** RFC 4180, without empty lines. */
function readCsv(text: string): string[][] {
  const records: string[][] = []
  const field = /("[^"]*(?:""[^"]*)*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/y
  let fields: string[] = []
  for (let place = 0; place <= text.length; ) {
    field.lastIndex = place
    const found = field.exec(text)
    if (found === null) throw refusal(`Line ${records.length + 1} is not CSV: a quote stands within a field`)
    const [whole, value = '', end = ''] = found
    fields.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value)
    if (end !== ',') {
      if (fields.length > 1 || fields[0] !== '') records.push(fields)
      fields = []
    }
    if (end === '') break
    place += whole.length
  }
  return records
}
