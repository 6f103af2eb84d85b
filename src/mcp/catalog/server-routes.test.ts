import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents, recordedTexts } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { openServerCredentials, openServerKey } from './server-credentials.ts'
import { mcpServerRoutes } from './server-routes.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, (deps) => [
    mcpServerRoutes({ ...deps, masterKey: testMasterKey(), plainHttp: 'loopback' }),
  ])
})
afterAll(() => plane.remove())

const servers = '/v1/catalog/mcp-servers'
const secrets = ['header-secret-1', 'client-secret-2', 'environment-secret-3'] as const
const [headerSecret, clientSecret, variableSecret] = secrets

const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  plane.call(method, path, { token: plane.adminToken, headers, ...(body === undefined ? {} : { body }) })

let made = 0
async function make(fields: object = { url: 'https://tools.example.com/mcp' }) {
  const answer = await call('POST', servers, { name: `server-${++made}`, ...fields })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json
}
const refused = async (...sent: Parameters<typeof call>) => {
  const { status, json } = await call(...sent)
  return [status, json.error?.code, json.error?.param]
}
const eventsOf = async (id: string) =>
  (await recordedEvents(plane.store.ledger)).filter((event) => JSON.stringify(event).includes(id))
const opened = async (id: string) => {
  const [row] = await plane.store.state.read<{ sealed_credentials: string }>(
    'select sealed_credentials from mcp_servers where id = ?',
    [id],
  )
  const key = await openServerKey({ ledger: plane.store.ledger, masterKey: testMasterKey() }, id)
  if (row === undefined || key === null) throw new Error('nothing to open')
  return openServerCredentials(key, id, row.sealed_credentials)
}

const reach = {
  url: 'https://tools.example.com/mcp/',
  headers: { 'X-Key': headerSecret },
  oauth: { token_url: 'https://login.example.com/token', client_id: 'gate', client_secret: clientSecret },
}

test('keeps prices, limits, the search of tools and the quarantine of a server, and takes limits away by null', async () => {
  const tool_limits = {
    buy: { price_per_call: 0.05, requests_per_minute: null },
    slow: { price_per_call: null, requests_per_minute: 3 },
  }
  const limits = { price_per_call: 0.001, requests_per_minute: 60, tool_limits, tools: 'searched' }
  const { id, ...created } = await make({ url: 'https://tools.example.com/mcp', ...limits })
  expect(created).toMatchObject({ ...limits, quarantined: false })
  const path = `${servers}/${id}`
  expect((await call('PATCH', path, { quarantined: true })).json).toMatchObject({ ...limits, quarantined: true })
  const none = { price_per_call: null, requests_per_minute: null, tool_limits: null }
  expect((await call('PATCH', path, none)).json).toMatchObject({ ...none, quarantined: true, tools: 'searched' })
  expect((await eventsOf(id))[1]).toMatchObject({ details: { fields: ['quarantined'], quarantined: true } })
  const wrong = (body: object) => refused('PATCH', path, body)
  expect(await wrong({ price_per_call: -1 })).toEqual([422, 'invalid_parameter', 'price_per_call'])
  expect(await wrong({ tool_limits: { buy: {} } })).toEqual([422, 'invalid_parameter', 'tool_limits.buy'])
  expect(await wrong({ tools: 'hidden' })).toEqual([422, 'invalid_parameter', 'tools'])
})

test('creates, shows, changes and deletes a server by URL, each with its event and no secret', async () => {
  const created = await call('POST', servers, { name: 'remote', ...reach, timeouts: { idle_seconds: 5 } })
  expect(created.status).toBe(201)
  const { id } = created.json
  expect(created.json).toMatchObject({
    name: 'remote',
    url: 'https://tools.example.com/mcp/',
    header_names: ['X-Key'],
    oauth: { token_url: 'https://login.example.com/token', client_id: 'gate' },
    command: null,
    environment_names: [],
    timeouts: { idle_seconds: 5 },
    approval: 'first_use',
    enabled: true,
  })
  const changed = await call('PATCH', `${servers}/${id}`, { enabled: false, timeouts: null })
  expect(changed.json).toMatchObject({ enabled: false, timeouts: null, header_names: ['X-Key'] })
  expect((await call('GET', `${servers}/${id}`)).json).toEqual(changed.json)
  expect((await call('GET', servers)).json.mcp_servers).toContainEqual(changed.json)
  expect(await opened(id)).toEqual({ headers: reach.headers, oauth: reach.oauth, environment: {} })
  expect((await call('DELETE', `${servers}/${id}`)).status).toBe(200)
  expect((await call('GET', `${servers}/${id}`)).status).toBe(404)
  expect((await eventsOf(id)).map(({ event_type }) => event_type)).toEqual([
    'catalog.created',
    'catalog.updated',
    'catalog.deleted',
  ])
})

test('shows no secret in an answer, an event or a database file', async () => {
  const remote = await make(reach)
  const local = await make({ command: { program: 'server' }, environment: { API_KEY: variableSecret } })
  const answers = [
    remote,
    local,
    (await call('PATCH', `${servers}/${remote.id}`, { oauth: reach.oauth })).json,
    (await call('GET', servers)).json,
  ]
  const { state, ledger } = plane.store
  const tables = await Promise.all([
    state.read('select * from mcp_servers'),
    ...['segment_facets', 'secrets', 'pending_changes'].map((table) => ledger.read(`select * from ${table}`)),
    recordedTexts(ledger),
  ])
  const everything = JSON.stringify([answers, tables])
  for (const secret of secrets) expect(everything).not.toContain(secret)
})

test('sends stored credentials only to the server’s present address', async () => {
  const { id } = await make(reach)
  const path = `${servers}/${id}`
  const url = 'https://elsewhere.example.com/mcp'
  expect(await refused('PATCH', path, { url })).toEqual([422, 'invalid_parameter', 'headers'])
  expect(await refused('PATCH', path, { url, headers: null })).toEqual([422, 'invalid_parameter', 'oauth'])
  expect((await call('PATCH', path, { url, headers: null, oauth: null })).status).toBe(200)
  expect((await call('PATCH', path, { command: { program: 'server' } })).json).toMatchObject({ url: null })
  await call('PATCH', path, { environment: { KEY: variableSecret } })
  const other = { program: 'other' }
  expect(await refused('PATCH', path, { command: other })).toEqual([422, 'invalid_parameter', 'environment'])
  const remote = await call('PATCH', path, { url })
  expect(remote.json).toMatchObject({ command: null, environment_names: [] })
})

test('refuses an unreachable or unsafe address and names the field', async () => {
  const url = 'https://tools.example.com/mcp'
  const command = { program: 'server' }
  for (const [body, param] of [
    [{ name: 'two__parts', url }, 'name'],
    [{ name: 'x' }, 'url'],
    [{ name: 'x', url, command }, 'command'],
    [{ name: 'x', url: 'http://tools.example.com/mcp' }, 'url'],
    [{ name: 'x', url: 'https://tools.example.com/mcp?key=1' }, 'url'],
    [{ name: 'x', url, environment: { KEY: 'v' } }, 'environment'],
    [{ name: 'x', command, headers: { 'x-key': 'v' } }, 'headers'],
    [{ name: 'x', url, headers: { Authorization: 'Basic x' }, oauth: reach.oauth }, 'headers'],
    [{ name: 'x', url, oauth: { ...reach.oauth, token_url: 'http://login.example.com/' } }, 'oauth.token_url'],
    [{ name: 'x', url, approval: 'never' }, 'approval'],
  ] as const) {
    expect(await refused('POST', servers, body)).toEqual([422, 'invalid_parameter', param])
  }
  expect((await make({ url: 'http://127.0.0.1:9/mcp' })).url).toBe('http://127.0.0.1:9/mcp')
  const { name, id, version } = await make()
  expect(await refused('POST', servers, { name, url })).toEqual([409, 'conflict', 'name'])
  const stale = { 'if-match': `"${version - 1}"` }
  expect((await call('PATCH', `${servers}/${id}`, { enabled: false }, stale)).status).toBe(412)
})
