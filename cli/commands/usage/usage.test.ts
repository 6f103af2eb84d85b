import { afterAll, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { usage } from './usage.ts'

const answers: Readonly<Record<string, object>> = {
  '/v1/usage/release': {
    worker: 'g/i/0',
    released_at: '2026-01-01T00:00:00.000Z',
    held: [
      { account: 'budget/b@2026-01-01', amount: 1_250_000_000 },
      { account: 'token/t/requests', amount: 3 },
    ],
  },
  '/v1/usage/accounts': {
    next_cursor: null,
    accounts: [
      { account: 'token/t/money', settled: 22_000, held: 1_500_000_000, workers: 1 },
      { account: 'token/t/requests', settled: 10, held: 0, workers: 0 },
    ],
  },
  '/v1/usage/excesses': {
    excesses: [{ provider_id: 'p', provider: 'acme', model: 'm', excess: 0.5, at: '2026' }],
    next_cursor: null,
  },
  '/v1/usage/forget-excess': { provider_id: 'p', model: 'm', excess: 0.5 },
  '/v1/usage/resume': { workers: ['g/i/1'] },
}
const control = recordingControlPlane(({ path }) => answers[path] ?? {})
afterAll(() => control.stop())

async function run(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(usage(terminal), rawArguments, terminal)
  return terminal.written()
}

test('lists accounts with their units, money in dollars', async () => {
  expect(await run('accounts', '--limit', '2')).toBe(
    [
      'ACCOUNT           UNIT      SETTLED   HELD  WORKERS',
      'token/t/money     USD       0.000022  1.5   1',
      'token/t/requests  requests  10        0     0',
      '',
    ].join('\n'),
  )
  expect(JSON.parse(await run('accounts', '--limit', '2', '--json'))).toEqual(answers['/v1/usage/accounts'])
})

test('releases a worker, forgets an excess and resumes granting, and shows the results', async () => {
  await expect(run('release', 'g/i/0')).rejects.toThrow('--yes')
  const released = await run('release', 'g/i/0', '--yes')
  expect(released).toContain('2026-01-01T00:00:00.000Z')
  expect(released).toContain('budget/b@2026-01-01 1.25 USD, token/t/requests 3 requests')
  expect(await run('excesses')).toMatch(/acme +m +0\.5/)
  expect(await run('forget-excess', 'p', 'm')).toContain('0.5')
  await expect(run('resume')).rejects.toThrow('--yes')
  expect(await run('resume', '--yes')).toContain('g/i/1')
  expect(control.requests.filter(({ method }) => method === 'POST')).toEqual([
    { method: 'POST', target: '/v1/usage/release', body: { worker: 'g/i/0' } },
    { method: 'POST', target: '/v1/usage/forget-excess', body: { provider_id: 'p', model: 'm' } },
    { method: 'POST', target: '/v1/usage/resume', body: {} },
  ])
})
