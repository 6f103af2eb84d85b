import { afterAll, expect, test } from 'bun:test'
import { main } from './main.ts'
import { recordingTerminal } from './recording-terminal.ts'

const requests: { method: string; target: string; body: unknown }[] = []
const record = {
  id: '0190b6f0-0000-7000-8000-000000000001',
  name: 'ci',
  token_prefix: 'gth_AbCdEfGh',
  purpose: 'gateway_runtime',
  status: 'active',
  expires_at: null,
  bindings: { team_id: 't' },
}
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, search } = new URL(request.url)
    const text = await request.text()
    requests.push({ method: request.method, target: pathname + search, body: text === '' ? null : JSON.parse(text) })
    if (request.method === 'POST') return Response.json({ ...record, token_value: 'gth_value' }, { status: 201 })
    if (pathname === '/v1/tokens') return Response.json({ tokens: [record], next_cursor: 'more' })
    return Response.json(request.method === 'DELETE' ? { ...record, status: 'revoked' } : record)
  },
})
afterAll(() => server.stop(true))

async function run(...rawArguments: string[]) {
  requests.length = 0
  const terminal = recordingTerminal({ environment: { SERVICE_API_URL: server.url.origin } })
  const exitCode = await main(['token', ...rawArguments], terminal)
  return { exitCode, out: terminal.written(), notes: terminal.noted() }
}

test('create sends what its flags say, in the words of the API, and prints the secret once', async () => {
  const flags = [
    '--name',
    'ci',
    '--purpose',
    'gateway-runtime',
    '--gateway-id',
    'g',
    '--team-id',
    't',
    '--expires-in',
    '30d',
  ]
  const { exitCode, out, notes } = await run('create', ...flags)
  expect(exitCode).toBe(0)
  const body = {
    name: 'ci',
    purpose: 'gateway_runtime',
    bindings: { gateway_id: 'g', team_id: 't' },
    expires_in_seconds: 2_592_000,
  }
  expect(requests).toEqual([{ method: 'POST', target: '/v1/tokens', body }])
  expect(out).toMatch(/^token_value +gth_value$/m)
  expect(notes).not.toContain('gth_value')
})

test('create --json prints the record', async () => {
  const { out } = await run('create', '--name', 'ci', '--purpose', 'general', '--json')
  expect(requests[0]?.body).toEqual({ name: 'ci', purpose: 'general' })
  expect(JSON.parse(out)).toMatchObject({ id: record.id, token_value: 'gth_value' })
})

test.each([
  [['create', '--purpose', 'general']],
  [['create', '--name', 'ci', '--purpose', 'gateway_runtime']],
  [['create', '--name', 'ci', '--purpose', 'general', '--expires-in', '30']],
  [['create', '--name', 'ci', '--purpose', 'general', '--expires-in', '0d']],
  [['list', '--purpose', 'nonsense']],
  [['get']],
  [['delete', record.id]],
])('%p is a usage error and asks nothing of the control plane', async (rawArguments) => {
  expect((await run(...rawArguments)).exitCode).toBe(2)
  expect(requests).toEqual([])
})

test('list prints a table and says how to go on', async () => {
  const { out, notes } = await run('list', '--purpose', 'gateway-runtime', '--status', 'active', '--limit', '1')
  expect(requests[0]?.target).toBe('/v1/tokens?purpose=gateway_runtime&status=active&limit=1')
  expect(out.split('\n')[1]?.split(/ {2,}/)).toEqual([
    record.id,
    'ci',
    'gateway_runtime',
    'active',
    'gth_AbCdEfGh',
    '-',
  ])
  expect(notes).toContain('--cursor more')
})

test('get prints the record', async () => {
  expect(JSON.parse((await run('get', record.id, '--json')).out)).toEqual(record)
  expect((await run('get', record.id)).out).toMatch(/^bindings +\{"team_id":"t"\}$/m)
})

test('an id cannot lead to another path', async () => {
  await run('get', '../../metrics')
  expect(requests[0]?.target).toBe('/v1/tokens/..%2F..%2Fmetrics')
})

test('delete names the flag it wants, and revokes with it', async () => {
  expect((await run('delete', record.id)).notes).toContain('--yes')
  const { exitCode, out } = await run('delete', record.id, '--yes')
  expect(exitCode).toBe(0)
  expect(requests).toEqual([{ method: 'DELETE', target: `/v1/tokens/${record.id}`, body: null }])
  expect(out).toMatch(/^status +revoked$/m)
})
