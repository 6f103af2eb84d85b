import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { oauthClientCommands } from './oauth-client.ts'

const client = { client_id: 'c-1', client_name: 'A notebook', status: 'active', scope: 'gateway:invoke' }
const control = recordingControlPlane(({ method, path }) =>
  method === 'GET' && path === '/v1/oauth/clients' ? { clients: [client], next_cursor: null } : client,
)
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

async function run(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(oauthClientCommands(terminal), rawArguments, terminal)
  return terminal.written()
}

test('registers an application with all its redirect URIs and scopes', async () => {
  const redirects = ['--redirect-uri', 'https://a.example.com/cb', '--redirect-uri', 'http://127.0.0.1:3000/cb']
  const scopes = ['--scope', 'gateway:invoke', '--scope', 'events:read']
  const out = await run('create', '--name', 'A notebook', ...redirects, ...scopes)
  expect(requests).toEqual([
    {
      method: 'POST',
      target: '/v1/oauth/clients',
      body: {
        client_name: 'A notebook',
        redirect_uris: ['https://a.example.com/cb', 'http://127.0.0.1:3000/cb'],
        scope: 'gateway:invoke events:read',
      },
    },
  ])
  expect(out).toContain('c-1')
})

test('sends only given fields, and refuses an empty change', async () => {
  await run('update', 'c-1', '--name', 'Renamed')
  expect(requests).toEqual([{ method: 'PATCH', target: '/v1/oauth/clients/c-1', body: { client_name: 'Renamed' } }])
  await expect(run('update', 'c-1')).rejects.toThrow('at least one field')
})

test('lists, shows, deactivates and activates applications', async () => {
  expect(await run('list')).toMatch(/c-1 +A notebook +active/)
  expect(JSON.parse(await run('get', 'c-1', '--json'))).toEqual(client)
  await run('deactivate', 'c-1')
  await run('activate', 'c-1')
  expect(requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /v1/oauth/clients',
    'GET /v1/oauth/clients/c-1',
    'POST /v1/oauth/clients/c-1/deactivate',
    'POST /v1/oauth/clients/c-1/activate',
  ])
})
