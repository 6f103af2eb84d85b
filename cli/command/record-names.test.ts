import { afterAll, beforeEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { main } from '../main.ts'
import { recordingControlPlane } from '../testing/control-plane.ts'
import { recordingTerminal } from '../testing/terminal.ts'

const [researchId, salesId, otherSalesId] = [1, 2, 3].map((number) => `01990000-0000-7000-8000-00000000000${number}`)
const adaId = '01990000-0000-7000-8000-00000000000a'
const [oldTokenId, newTokenId] = ['01990000-0000-7000-8000-0000000000b1', '01990000-0000-7000-8000-0000000000b2']

const teams = [
  { id: researchId, name: 'research' },
  { id: salesId, name: 'sales' },
  { id: otherSalesId, name: 'sales' },
]
const refused = (status: number, code: string, param: string | null = null) =>
  Response.json({ error: { message: 'refused', code, param }, request_id: 'r' }, { status })
const [serverId, gatewayId, budgetId] = ['c1', 'c2', 'c3'].map((end) => `01990000-0000-7000-8000-0000000000${end}`)
const scopeSent = z.looseObject({ scope: z.looseObject({ id: z.string() }) })
const uuid = /^[0-9a-f-]{36}$/

const control = recordingControlPlane(({ method, path, target, body }) => {
  if (path === '/v1/teams') {
    return target.includes('cursor')
      ? { teams: teams.slice(1), next_cursor: null }
      : { teams: teams.slice(0, 1), next_cursor: 'more' }
  }
  if (path === '/v1/users') return { users: [{ id: adaId, name: 'Ada', email: 'ada@example.com' }], next_cursor: null }
  if (path === '/v1/tokens' && method === 'GET') {
    const tokens = [
      { id: oldTokenId, name: 'app', status: 'active', rotated_to_id: newTokenId },
      { id: newTokenId, name: 'app', status: 'active' },
    ]
    return { tokens, next_cursor: null }
  }
  if (path === '/v1/tokens') {
    const sent = JSON.stringify(body)
    return sent.includes(String(researchId))
      ? { id: newTokenId, token_value: 'gth_x' }
      : refused(422, 'invalid_parameter')
  }
  if (path === '/v1/catalog/mcp-servers')
    return { mcp_servers: [{ id: serverId, name: 'research' }], next_cursor: null }
  if (path === '/v1/gateways') return { gateways: [{ id: gatewayId, name: 'research' }], next_cursor: null }
  if (method === 'POST' && (path === '/v1/budgets' || path === '/v1/alerts')) {
    const { id } = scopeSent.parse(body).scope
    return uuid.test(id) ? { id: salesId } : refused(422, 'invalid_parameter', 'scope.id')
  }
  if (path === '/v1/budgets') return { budgets: [{ id: budgetId, name: 'research' }], next_cursor: null }
  if (path === '/v1/policies') return refused(403, 'permission_denied')
  const [, , , id = ''] = path.split('/')
  return uuid.test(decodeURIComponent(id)) && !id.endsWith('f') ? { id } : refused(404, 'not_found')
})
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

async function run(...rawArguments: string[]) {
  const terminal = recordingTerminal({ environment: control.environment })
  const code = await main(rawArguments, terminal)
  return { code, out: terminal.written(), notes: terminal.noted() }
}
const targets = () => requests.map(({ method, target }) => `${method} ${target}`)

test('an id is sent as it is, and nothing is looked up', async () => {
  expect((await run('team', 'get', String(salesId))).code).toBe(0)
  expect(targets()).toEqual([`GET /v1/teams/${salesId}`])
})

test('a name is looked up once the control plane does not know it as an id, in the whole list', async () => {
  expect((await run('team', 'get', 'research')).code).toBe(0)
  expect(targets()).toEqual([
    'GET /v1/teams/research',
    'GET /v1/teams',
    'GET /v1/teams?cursor=more',
    `GET /v1/teams/${researchId}`,
  ])
})

test('looks up several names of one request', async () => {
  const { code } = await run('team', 'add-member', 'research', 'ADA@example.com')
  expect(code).toBe(0)
  expect(requests.at(-1)).toEqual({
    method: 'POST',
    target: `/v1/teams/${researchId}/members`,
    body: { user_id: adaId },
  })
})

test('flags of a token take names, and a field of the same text stays', async () => {
  const flags = ['--name', 'research', '--purpose', 'general', '--team-id', 'research', '--user-id', 'Ada']
  expect((await run('token', 'create', ...flags)).code).toBe(0)
  expect(requests.at(-1)?.body).toEqual({
    name: 'research',
    purpose: 'general',
    bindings: { team_id: researchId, user_id: adaId },
  })
})

test.each([
  ['budget', 'team', 'research', researchId],
  ['budget', 'user', 'Ada', adaId],
  ['budget', 'mcp_server', 'research', serverId],
  ['alert', 'team', 'research', researchId],
  ['alert', 'gateway', 'research', gatewayId],
  ['alert', 'budget', 'research', budgetId],
  ['alert', 'token', 'app', newTokenId],
])('a %s whose scope is a %s takes its name', async (command, kind, name, id) => {
  const own = command === 'budget' ? ['--max-budget', '1'] : ['--condition', 'refusals']
  const { code } = await run(command, 'create', '--name', 'research', ...own, '--scope', kind, '--scope-id', name)
  expect([code, requests.at(-1)?.body]).toEqual([0, expect.objectContaining({ name: 'research', scope: { kind, id } })])
})

test('a name in a scope is one of its kind only', async () => {
  const of = (kind: string, id: string) =>
    run('alert', 'create', '--name', 'x', '--condition', 'refusals', '--scope', kind, '--scope-id', id)
  expect((await of('gateway', 'sales')).notes).toContain('There is no gateway "sales"')
  requests.length = 0
  expect((await of('provider', 'research')).notes).toContain('refused')
  expect(targets()).toEqual(['POST /v1/alerts'])
})

test('names the ids where a name is ambiguous, and changes nothing', async () => {
  const { code, notes } = await run('team', 'delete', 'sales', '--yes')
  expect(code).toBe(2)
  expect(notes).toContain(`use an id, ${salesId} or ${otherSalesId}`)
  expect(targets().filter((target) => target.startsWith('DELETE'))).toEqual(['DELETE /v1/teams/sales'])
})

test('of tokens with one name, means the one in use', async () => {
  expect((await run('token', 'delete', 'app', '--yes')).code).toBe(0)
  expect(targets().at(-1)).toBe(`DELETE /v1/tokens/${newTokenId}`)
})

test('says which record there is not, and suggests the nearest name', async () => {
  const { code, notes } = await run('team', 'get', 'reserch')
  expect(code).toBe(1)
  expect(notes).toContain('There is no team "reserch": did you mean "research"?')
  expect(notes).toContain('not_found')
})

test('gives the first refusal for an unknown id, and where the list may not be read', async () => {
  expect((await run('team', 'get', '01990000-0000-7000-8000-00000000000f')).notes).toContain('error: refused')
  expect((await run('policy', 'get', 'pii')).notes).toContain('code not_found')
})

test.each(['', '.', '..'])('refuses %p, which would name another path', async (text) => {
  expect((await run('team', 'delete', text, '--yes')).code).toBe(2)
  expect((await run('team', 'remove-member', 'research', text)).code).toBe(2)
  expect(requests).toEqual([])
})
