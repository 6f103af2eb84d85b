import { afterAll, expect, test } from 'bun:test'
import { dispatch } from './command.ts'
import { recordingControlPlane } from './test-control-plane.ts'
import { recordingTerminal } from './test-terminal.ts'
import { usage } from './usage.ts'

const answers: Readonly<Record<string, object>> = {
  '/v1/usage/release': { lane: 'g/i/0', released_at: '2026-01-01T00:00:00.000Z' },
  '/v1/usage/excesses': { excesses: [{ provider_id: 'p', model: 'm', excess: 0.5, at: '2026' }], next_cursor: null },
  '/v1/usage/forget-excess': { provider_id: 'p', model: 'm', excess: 0.5 },
  '/v1/usage/resume': { lanes: ['g/i/1'] },
}
const control = recordingControlPlane(({ path }) => answers[path] ?? {})
afterAll(() => control.stop())

async function run(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await dispatch(usage(terminal), rawArguments, terminal)
  return terminal.written()
}

test('releases a lane, forgets an excess and resumes granting, and shows the results', async () => {
  await expect(run('release', 'g/i/0')).rejects.toThrow('--yes')
  expect(await run('release', 'g/i/0', '--yes')).toContain('2026-01-01T00:00:00.000Z')
  expect(await run('excesses')).toContain('0.5')
  expect(await run('forget-excess', 'p', 'm')).toContain('0.5')
  await expect(run('resume')).rejects.toThrow('--yes')
  expect(await run('resume', '--yes')).toContain('g/i/1')
  expect(control.requests).toEqual([
    { method: 'POST', target: '/v1/usage/release', body: { lane: 'g/i/0' } },
    { method: 'GET', target: '/v1/usage/excesses', body: null },
    { method: 'POST', target: '/v1/usage/forget-excess', body: { provider_id: 'p', model: 'm' } },
    { method: 'POST', target: '/v1/usage/resume', body: {} },
  ])
})
