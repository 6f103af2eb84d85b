import { afterAll, expect, test } from 'bun:test'
import { dispatch } from './command.ts'
import { recordingControlPlane } from './test-control-plane.ts'
import { recordingTerminal } from './test-terminal.ts'
import { usage } from './usage.ts'

const answers: Readonly<Record<string, object>> = {
  '/v1/usage/release': { lane: 'g/i/0', released_at: '2026-01-01T00:00:00.000Z' },
  '/v1/usage/reopen': { account: 'token/t/money', closed_at: null },
  '/v1/usage/resume': { lanes: ['g/i/1'] },
}
const control = recordingControlPlane(({ path }) => answers[path] ?? {})
afterAll(() => control.stop())

async function run(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await dispatch(usage(terminal), rawArguments, terminal)
  return terminal.written()
}

test('a lane is released, an account reopened and granting resumed, and what became of them is shown', async () => {
  await expect(run('release', 'g/i/0')).rejects.toThrow('--yes')
  expect(await run('release', 'g/i/0', '--yes')).toContain('2026-01-01T00:00:00.000Z')
  expect(await run('reopen', 'token/t/money')).toContain('token/t/money')
  await expect(run('resume')).rejects.toThrow('--yes')
  expect(await run('resume', '--yes')).toContain('g/i/1')
  expect(control.requests).toEqual([
    { method: 'POST', target: '/v1/usage/release', body: { lane: 'g/i/0' } },
    { method: 'POST', target: '/v1/usage/reopen', body: { account: 'token/t/money' } },
    { method: 'POST', target: '/v1/usage/resume', body: {} },
  ])
})
