import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { costs } from './costs.ts'

const money = { cost: 34.374, previous_cost: 1e-9, previous_cost_to_date: 0, forecast: 40 }
const answer = {
  by: ['team', 'dimension:customer'],
  rows: [{ names: { team: 'research', 'dimension:customer': null }, requests: 2, ...money }],
  left_out: 3,
  totals: { requests: 5, ...money, cost: 50 },
}
const control = recordingControlPlane(() => answer)
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

async function run(...rawArguments: string[]) {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(costs(terminal), rawArguments, terminal)
  return { out: terminal.written(), notes: terminal.noted() }
}

test('shows the cost of a month with exact dollars, the total and how many rows are left out', async () => {
  const { out, notes } = await run('--month', '2026-11', '--by', 'team,dimension:customer')
  expect(requests[0]?.target).toBe('/v1/usage/costs?by=team%2Cdimension%3Acustomer&month=2026-11')
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['TEAM', 'DIMENSION:CUSTOMER', 'REQUESTS', 'USD', 'MONTH BEFORE TO DATE', 'MONTH BEFORE', 'FORECAST'],
    ['research', '-', '2', '34.374', '0.00', '0.000000001', '40.00'],
    ['total', '5', '50.00', '0.00', '0.000000001', '40.00'],
    [''],
  ])
  expect(notes).toContain('3 more rows are in --format csv')
})

test.each(['csv', 'focus'])('writes %s as the control plane says it', async (format) => {
  const { out } = await run('--format', format)
  expect(requests[0]?.target).toBe(`/v1/usage/costs/export?format=${format}`)
  expect(JSON.parse(out)).toEqual(answer)
})

test('JSON is the answer as it came', async () => {
  expect(JSON.parse((await run('--json')).out)).toEqual(answer)
  expect(JSON.parse((await run('--format', 'json')).out)).toEqual(answer)
})
