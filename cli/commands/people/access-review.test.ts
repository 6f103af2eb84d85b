import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { accessReview } from './access-review.ts'

const token = (token_id: string) => ({ token_id, name: 'old', reasons: ['unused'], created_by: 'user:u1' })
const control = recordingControlPlane(({ method, target }) => {
  if (method === 'POST') return { tokens: [{ token_id: 't1', result: 'revoked' }], propagation: null }
  return target.includes('cursor=')
    ? { tokens: [token('t2')], next_cursor: null }
    : { tokens: [token('t1')], next_cursor: 'more' }
})
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

async function run(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(accessReview(terminal), rawArguments, terminal)
  return terminal.written()
}

test('lists tokens with their reasons', async () => {
  expect(await run('list', '--reason', 'unused', '--unused-days', '30')).toMatch(/t1 +old +.*unused/)
  expect(requests[0]?.target).toBe('/v1/access-review?reason=unused&unused_days=30')
})

test('revokes named tokens', async () => {
  expect(await run('revoke', '--token-id', 't1', '--token-id', 't2', '--yes')).toBe('revoked t1\n')
  expect(requests.map(({ body }) => body)).toEqual([{ token_ids: ['t1', 't2'] }])
})

test('revokes all of a reason, having read the whole list before', async () => {
  await run('revoke', '--reason', 'unused', '--yes')
  expect(requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST'])
  expect(requests.at(-1)?.body).toEqual({ token_ids: ['t1', 't2'] })
})

test('revokes nothing without a choice, with two of them, or without --yes', async () => {
  await expect(run('revoke', '--yes')).rejects.toThrow('either')
  await expect(run('revoke', '--token-id', 't1', '--reason', 'unused', '--yes')).rejects.toThrow('either')
  await expect(run('revoke', '--reason', 'unused')).rejects.toThrow('--yes')
  expect(requests).toEqual([])
})
