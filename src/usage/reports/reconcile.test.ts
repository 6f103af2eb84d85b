import { expect, test } from 'bun:test'
import { readInvoice } from './invoice.ts'
import { type Booked, comparableModel, reconcile } from './reconcile.ts'

const tolerance = { share: 0.01, amount: 0.01 }
const booked = (day: string, model: string, cost: number, inputTokens = 0, outputTokens = 0): Booked => ({
  ...{ day, model, cost, inputTokens, outputTokens },
})
const kinds = (csv: string, ours: Booked[]) =>
  reconcile(readInvoice(csv).lines, ours, tolerance).differences.map(({ kind, day, model }) => [kind, day, model])

test('reads the costs of Anthropic, whose models have names for people', () => {
  const csv = [
    'usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type,inference_geo,speed,api_key_id,api_key_status',
    '2026-11-04,Claude Haiku 4.5,Default,demo,message,≤ 200k,input_no_cache,0.75,0.75,token,not_available,standard,k,active',
    '2026-11-04,Claude Haiku 4.5,Default,demo,message,≤ 200k,output,1.25,1.25,token,not_available,standard,k,active',
    '2026-11-04,Claude Opus 4.1,Default,"demo, two",message,≤ 200k,output,7.00,7.00,token,not_available,standard,k,active',
  ].join('\r\n')
  expect(readInvoice(csv).form).toBe('Anthropic costs')
  const ours = [booked('2026-11-04', 'claude-haiku-4-5-20251001', 2.001), booked('2026-11-04', 'claude-opus-4-1', 5)]
  expect(kinds(csv, ours)).toEqual([['amount', '2026-11-04', 'claude-opus-4-1']])
})

test('reads the usage of Anthropic, and says that tokens differ', () => {
  const csv = [
    'usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count',
    '2026-11-04 10:00,claude-haiku-4-5-20251001,k,w,message,≤ 200k,100,20,0,300,50,0',
    '2026-11-04 11:00,claude-haiku-4-5-20251001,k,w,message,≤ 200k,100,0,0,0,50,0',
  ].join('\n')
  expect(kinds(csv, [booked('2026-11-04', 'claude-haiku-4-5', 1, 520, 100)])).toEqual([])
  expect(kinds(csv, [booked('2026-11-04', 'claude-haiku-4-5', 1, 520, 80)])).toEqual([
    ['tokens', '2026-11-04', 'claude-haiku-4-5'],
  ])
})

test('reads the costs of OpenAI by line item, and names what is on one side only', () => {
  const csv = [
    'start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id',
    '1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,1.5,usd,"gpt-4o-2024-08-06, input",p',
    '1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,2.5,usd,"gpt-4o-2024-08-06, output",p',
    '1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,9,usd,"o3-mini, output",p',
    '1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,0.001,usd,"web search tool calls",p',
  ].join('\n')
  const ours = [booked('2026-11-01', 'openai/gpt-4o', 4), booked('2026-11-02', 'gpt-4o', 3)]
  const { differences, invoiced, booked: sum, alike } = reconcile(readInvoice(csv).lines, ours, tolerance)
  expect(differences.map(({ kind, day, model }) => [kind, day, model])).toEqual([
    ['only_invoiced', '2026-11-01', 'o3-mini'],
    ['only_booked', '2026-11-02', 'gpt-4o'],
  ])
  expect([invoiced.cost, sum.cost, alike]).toEqual([13.001, 7, 2])
})

test('tells a price that differs from tokens that differ, where the file has both', () => {
  const csv = 'usage_date_utc,model,usage_type,cost_usd,input_tokens,output_tokens\n2026-11-01,gpt-4o,text,5,100,50\n'
  expect(kinds(csv, [booked('2026-11-01', 'gpt-4o', 4, 100, 50)])).toEqual([['price', '2026-11-01', 'gpt-4o']])
  expect(kinds(csv, [booked('2026-11-01', 'gpt-4o', 4, 90, 50)])).toEqual([['tokens', '2026-11-01', 'gpt-4o']])
})

test('a file without days is compared by model alone', () => {
  const ours = [booked('2026-11-01', 'gpt-4o', 4), booked('2026-11-02', 'gpt-4o', 6)]
  expect(kinds('model,cost_usd\ngpt-4o,10\n', ours)).toEqual([])
})

test('refuses a file that it does not know, and names the line that is wrong', () => {
  const refusal = (csv: string) => {
    try {
      readInvoice(csv)
      return 'none'
    } catch (error) {
      return String(error)
    }
  }
  expect(refusal('a,b\n1,2\n')).toContain('not that of a known file')
  expect(refusal('')).toContain('not that of a known file')
  expect(refusal('model,cost_usd\ngpt-4o,1\ngpt-4o\n')).toContain('Line 3 has 1 fields')
  expect(refusal('amount_value,amount_currency\n1,usd\n2,eur\n')).toContain('Line 3: amount_currency is EUR')
  expect(refusal('model,cost_usd\ngpt-4o,much\n')).toContain('Line 2: cost_usd is no number')
  expect(refusal('model,cost_usd,date\ngpt-4o,1,soon\n')).toContain('Line 2: the date cannot be read')
  expect(refusal('model,cost_usd\n"gpt"4o,1\n')).toContain('Line 2 is not CSV')
})

test('compares names of models without dates, prefixes and ways of writing', () => {
  for (const name of [
    'Claude Haiku 4.5',
    'claude-haiku-4-5',
    'anthropic/claude-haiku-4-5-20251001',
    'claude-haiku-4-5-latest',
  ]) {
    expect(comparableModel(name)).toBe('claude-haiku-4-5')
  }
  expect(comparableModel('gpt-4o-2024-08-06')).toBe('gpt-4o')
  expect(comparableModel('gpt-4o-mini')).not.toBe(comparableModel('gpt-4o'))
})
