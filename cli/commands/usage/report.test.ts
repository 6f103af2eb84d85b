import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { report } from './report.ts'

const sums = { input_tokens: 1200, output_tokens: 30, cached_input_tokens: 0 }
const answer = {
  by: ['team', 'model'],
  rows: [
    {
      group: { team: 't1', model: '=m,1' },
      names: { team: 'research' },
      ...{ requests: 2, ...sums, cost: 1.5, unpriced: 0 },
    },
    { group: { team: 't2', model: null }, names: { team: null }, ...{ requests: 1, ...sums, cost: 1e-9, unpriced: 1 } },
  ],
  totals: { requests: 3, ...sums, cost: 1.500000001, unpriced: 1 },
}
const control = recordingControlPlane(() => answer)
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

const now = () => Date.parse('2026-12-03T00:00:00Z')
async function run(...rawArguments: string[]) {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(report(terminal, now), rawArguments, terminal)
  return { out: terminal.written(), notes: terminal.noted() }
}
const asked = (): Record<string, string> =>
  Object.fromEntries(new URL(requests[0]?.target ?? '', 'http://x').searchParams)

test('asks for a month in UTC, by default the present one', async () => {
  await run('--month', '2026-11', '--by', 'team,token', '--by', 'tag:project')
  expect(asked()).toEqual({
    ...{ by: 'team,token,tag:project', since: '2026-11-01T00:00:00.000Z', until: '2026-12-01T00:00:00.000Z' },
  })
  requests.length = 0
  await run()
  expect(asked()).toEqual({
    ...{ by: 'team,model', since: '2026-12-01T00:00:00.000Z', until: '2027-01-01T00:00:00.000Z' },
  })
})

test('asks for another time, and for some requests only', async () => {
  await run('--since', '7d', '--team', 'research', '--model', 'gpt-4o')
  expect(asked()).toEqual({ by: 'team,model', since: '7d', team: 'research', model: 'gpt-4o' })
})

test('shows names, exact dollars and a total, and says what has no price', async () => {
  const { out, notes } = await run()
  expect(out).toBe(
    [
      'TEAM      MODEL  REQUESTS  INPUT TOKENS  OUTPUT TOKENS          USD',
      'research  =m,1          2          1200             30         1.50',
      't2        -             1          1200             30  0.000000001',
      'total                   3          1200             30  1.500000001',
      '',
    ].join('\n'),
  )
  expect(notes).toContain('1 requests are to models without a price')
})

test('CSV has ids beside names, and no cell that a spreadsheet takes for a formula', async () => {
  expect((await run('--format', 'csv')).out.split('\r\n')).toEqual([
    'team_id,team,model,requests,input_tokens,output_tokens,cost_usd',
    't1,research,"\'=m,1",2,1200,30,1.50',
    't2,,,1,1200,30,0.000000001',
    '',
  ])
})

test('JSON is the answer as it came', async () => {
  expect(JSON.parse((await run('--format', 'json')).out)).toEqual(answer)
  expect(JSON.parse((await run('--json')).out)).toEqual(answer)
})

test.each([
  [['--month', '2026-13'], '--month takes a month'],
  [['--month', 'november'], '--month takes a month'],
  [['--month', '2026-11', '--since', '1d'], 'either --month or --since'],
  [['--until', '2026-11-01T00:00:00Z'], '--until goes with --since'],
  [['--format', 'xml'], '--format takes table, csv, json'],
])('refuses %p and asks nothing', async (rawArguments, message) => {
  await expect(run(...rawArguments)).rejects.toThrow(message)
  expect(requests).toEqual([])
})
