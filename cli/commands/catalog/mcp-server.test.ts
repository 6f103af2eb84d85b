import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { mcpServerCommands } from './mcp-server.ts'

const changes = [{ path: 'description', before: '"Reads"', after: '"Reads\\u200b\u202e all"' }]
const offer = (name: string, digest: string, status: string, more: object = {}) => ({
  ...{ kind: 'tool', name, digest, status },
  ...more,
})
const control = recordingControlPlane(({ path }) =>
  path.endsWith('/offers')
    ? {
        offers: [
          offer('a', 'a1', 'held'),
          offer('a', 'a2', 'approved'),
          offer('b', 'b1', 'held'),
          offer('b', 'b2', 'held', { changes }),
          offer('c', 'c1', 'held', { misfit: 'inputSchema must be an object' }),
          offer('d', 'd1', 'held', { dismissed_at: '2026-11-01T12:00:00.000Z' }),
        ],
        next_cursor: null,
      }
    : { id: 'made', name: 'n' },
)
afterAll(() => control.stop())
beforeEach(() => {
  control.requests.length = 0
})

async function run(rawArguments: string[], environment: Record<string, string> = {}) {
  const terminal = recordingTerminal({ environment: { ...control.environment, ...environment } })
  await runCommandLine(mcpServerCommands(terminal), rawArguments, terminal)
  return terminal.written() + terminal.noted()
}

const sent = () => control.requests.map(({ method, target, body }) => ({ method, path: target, body }))
const path = '/v1/catalog/mcp-servers'

test('creates an MCP server with secrets from environment variables, and shows no secret', async () => {
  const flags = ['--name', 'tools', '--url', 'https://tools.example.com/mcp', '--header-env', 'X-Key=KEY']
  const oauth = [
    '--oauth-token-url',
    'https://l.example.com/t',
    '--oauth-client-id',
    'gate',
    '--oauth-client-secret-env',
    'S',
  ]
  const out = await run(['create', ...flags, ...oauth], { KEY: 'header-secret', S: 'client-secret' })
  expect(sent()).toEqual([
    {
      method: 'POST',
      path,
      body: {
        name: 'tools',
        url: 'https://tools.example.com/mcp',
        headers: { 'X-Key': 'header-secret' },
        oauth: { token_url: 'https://l.example.com/t', client_id: 'gate', client_secret: 'client-secret' },
      },
    },
  ])
  expect(out).not.toMatch(/header-secret|client-secret/)
})

test('takes a program with arguments and environment, and refuses incomplete flags', async () => {
  const flags = ['--program', 'npx', '--argument', 'server', '--argument', 'stdio', '--environment-env', 'API_KEY=KEY']
  await run(['update', 'id', ...flags, '--no-enabled', '--clear', 'timeouts'], { KEY: 'secret' })
  expect(sent()[0]?.body).toEqual({
    command: { program: 'npx', args: ['server', 'stdio'] },
    environment: { API_KEY: 'secret' },
    enabled: false,
    timeouts: null,
  })
  for (const wrong of [
    ['create', '--name', 'x', '--argument', 'a'],
    ['create', '--name', 'x', '--oauth-client-id', 'a'],
    ['create', '--name', 'x', '--header-env', 'X-Key'],
    ['update', 'id'],
    ['approve', 'id'],
    ['approve', 'id', '--held', '--digest', 'a1'],
    ['dismiss', 'id'],
  ]) {
    expect(run(wrong)).rejects.toMatchObject({ code: 'usage' })
  }
})

test('approves a held definition by its digest, or the newest of each', async () => {
  expect(await run(['tools', 'id'])).toContain('held')
  await run(['approve', 'id', '--digest', 'a1'])
  await run(['approve', 'id', '--held'])
  const approvals = sent().filter(({ method }) => method === 'POST')
  expect(approvals.map(({ body }) => body)).toEqual([
    { kind: 'tool', name: 'a', digest: 'a1' },
    { kind: 'tool', name: 'b', digest: 'b2' },
  ])
  expect(run(['approve', 'id', '--digest', 'none'])).rejects.toMatchObject({ code: 'not_found' })
})

test('dismisses a held definition by its digest, or the newest of each that waits', async () => {
  expect(await run(['dismiss', 'id', '--digest', 'b1'])).toBe('dismissed tool b b1\n')
  await run(['dismiss', 'id', '--held'])
  const dismissals = sent().filter(({ method }) => method === 'POST')
  expect(dismissals[0]).toMatchObject({ path: `${path}/id/offers/dismiss`, body: { name: 'b', digest: 'b1' } })
  expect(dismissals.slice(1).map(({ body }) => body)).toEqual([
    { kind: 'tool', name: 'b', digest: 'b2' },
    { kind: 'tool', name: 'c', digest: 'c1' },
  ])
  expect(await run(['changes', 'id'])).toContain('new tool d d1\n  it was dismissed at 2026-11-01T12:00:00.000Z\n')
})

test('shows what is held now and how it differs from what was approved, without characters that hide', async () => {
  const out = await run(['changes', 'id'])
  expect(out).toContain('changed tool b b2\n  description\n    - "Reads"\n    + ')
  expect(out).not.toMatch(/b1|a1|\u202e/)
})

test('quarantines a server and sets prices and limits', async () => {
  await run(['update', 'id', '--quarantined', '--price-per-call', '0.01', '--requests-per-minute', '60'])
  const limits = { buy: { price_per_call: 0.5, requests_per_minute: 3 } }
  await run(['update', 'id', '--no-quarantined', '--tools', 'searched', '--tool-limits', JSON.stringify(limits)])
  expect(sent().map(({ body }) => body)).toEqual([
    { quarantined: true, price_per_call: 0.01, requests_per_minute: 60 },
    { quarantined: false, tools: 'searched', tool_limits: limits },
  ])
})

test('withdraws an approval by its digest', async () => {
  await run(['withdraw', 'id', '--digest', 'a2'])
  expect(sent().at(-1)).toEqual({
    method: 'POST',
    path: `${path}/id/offers/withdraw`,
    body: { kind: 'tool', name: 'a', digest: 'a2' },
  })
  expect(run(['withdraw', 'id', '--digest', 'none'])).rejects.toMatchObject({ code: 'not_found' })
})
