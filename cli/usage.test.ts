import { afterAll, expect, test } from 'bun:test'
import { dispatch } from './command.ts'
import { recordingTerminal } from './test-terminal.ts'
import { usage } from './usage.ts'

const requests: { path: string; body: unknown }[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    requests.push({ path: pathname, body: await request.json() })
    return pathname === '/v1/usage/release'
      ? Response.json({ lane: 'g/i/0', released_at: '2026-01-01T00:00:00.000Z' })
      : Response.json({ account: 'token/t/money', closed_at: null })
  },
})
afterAll(() => server.stop(true))

async function run(...rawArguments: string[]): Promise<string> {
  const environment = {
    SERVICE_API_URL: server.url.origin,
    SERVICE_API_TOKEN: 'gth_x',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  const terminal = recordingTerminal({ environment })
  await dispatch(usage(terminal), rawArguments, terminal)
  return terminal.written()
}

test('a lane is released and an account reopened, and what became of them is shown', async () => {
  await expect(run('release', 'g/i/0')).rejects.toThrow('--yes')
  expect(await run('release', 'g/i/0', '--yes')).toContain('2026-01-01T00:00:00.000Z')
  expect(await run('reopen', 'token/t/money')).toContain('token/t/money')
  expect(requests).toEqual([
    { path: '/v1/usage/release', body: { lane: 'g/i/0' } },
    { path: '/v1/usage/reopen', body: { account: 'token/t/money' } },
  ])
})
