import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { reconcile } from './reconcile.ts'

const money = (cost: number | null) => ({ cost, input_tokens: null, output_tokens: null })
const answer = {
  ...{ form: 'OpenAI costs', month: '2026-10', lines: 2, other_months: 1, alike: 1, left_out: 3 },
  ...{ invoiced: money(10), booked: money(9) },
  differences: [
    { kind: 'amount', day: '2026-10-02', model: 'gpt-4o', invoiced: money(3), booked: money(2.5) },
    { kind: 'only_invoiced', day: null, model: null, invoiced: money(0.5), booked: null },
  ],
}
const control = recordingControlPlane(() => answer)
const folder = mkdtempSync(join(tmpdir(), 'invoice-'))
const file = join(folder, 'october.csv')
writeFileSync(file, 'a,b\n')
afterAll(() => {
  control.stop()
  rmSync(folder, { recursive: true })
})

async function run(...rawArguments: string[]) {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(
    reconcile(terminal, async () => 'piped'),
    rawArguments,
    terminal,
  )
  return { out: terminal.written(), notes: terminal.noted() }
}
const october = ['--month', '2026-10', '--provider', 'openai']

test('sends the file and names each difference with both amounts', async () => {
  const { out, notes } = await run(file, ...october, '--tolerance', '0', '--tolerance-percent', '2.5')
  expect(control.requests.at(-1)).toEqual({
    ...{ method: 'POST', target: '/v1/usage/reconciliation' },
    body: { month: '2026-10', provider: 'openai', csv: 'a,b\n', tolerance: 0, tolerance_percent: 2.5 },
  })
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['DIFFERENCE', 'DAY', 'MODEL', 'INVOICE', 'BOOKED'],
    ['another amount', '2026-10-02', 'gpt-4o', '3.00 USD', '2.50 USD'],
    ['only on the invoice', '-', '-', '0.50 USD', 'nothing'],
    [''],
  ])
  expect(notes).toContain('1 lines of other months')
  expect(notes).toContain('3 more differences')
})

test('reads stdin, and writes CSV and JSON', async () => {
  const { out } = await run('-', ...october, '--format', 'csv')
  expect(control.requests.at(-1)?.body).toMatchObject({ csv: 'piped' })
  expect(out.split('\r\n').slice(1, 3)).toEqual(['amount,2026-10-02,gpt-4o,3,,,2.5,,', 'only_invoiced,,,0.5,,,,,'])
  expect(JSON.parse((await run(file, ...october, '--json')).out)).toEqual(answer)
})

test('says which file cannot be read, and asks for the provider and the month', async () => {
  const missing = join(folder, 'nowhere.csv')
  await expect(run(missing, ...october)).rejects.toThrow(`${missing} cannot be read`)
  await expect(run(file, '--month', '2026-10')).rejects.toThrow('--provider')
  await expect(run(file, ...october, '--tolerance', 'much')).rejects.toThrow('--tolerance takes a number')
})
