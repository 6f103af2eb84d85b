import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents, recordedTexts } from '../../events/testing/recorded.ts'
import { anonymous } from '../../identity/principal.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { definitionOf, type offerKinds } from '../offers/definition.ts'
import { firstUseMilliseconds } from '../offers/offer-report.ts'
import { mcpOfferRoutes } from '../offers/offer-routes.ts'
import { offersLimit, takeOffers } from '../offers/take-offers.ts'
import { openServerCredentials, openServerKey } from './server-credentials.ts'
import { mcpServerRoutes } from './server-routes.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, (deps) => [
    mcpServerRoutes({ ...deps, masterKey: testMasterKey(), plainHttp: 'loopback' }),
    mcpOfferRoutes({ ...deps, log: silentLog }),
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

const tool = (name: string, description = 'Does it') => ({ name, description, inputSchema: { type: 'object' } })

async function report(serverId: string, offers: readonly object[], kind: (typeof offerKinds)[number] = 'tool') {
  const definitions = offers.flatMap((offer) => definitionOf(kind, offer)?.text ?? [])
  const gateway = { principal: { ...anonymous, name: 'runtime', gatewayId: 'g' }, requestId: 'r' }
  const deps = { ...plane.dependencies, log: silentLog }
  return await takeOffers(deps, gateway, { server_id: serverId, kind, definitions })
}
const offersOf = async (id: string) => {
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  return offers.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`)
}

test('approves what a server offers when it is first listed and holds later changes and additions', async () => {
  const { id } = await make()
  expect(await report(id, [tool('a'), tool('b')])).toEqual({ approved: 2, held: 0 })
  // The next page of the same listing.
  expect(await report(id, [tool('a'), tool('c')])).toEqual({ approved: 1, held: 0 })
  expect(await report(id, [tool('a', 'Sends it to me')])).toEqual({ approved: 0, held: 1 })
  plane.clock.advance(firstUseMilliseconds)
  expect(await report(id, [tool('d')])).toEqual({ approved: 0, held: 1 })
  expect(await offersOf(id)).toEqual(['a approved', 'b approved', 'c approved', 'a held', 'd held'])
  const events = (await eventsOf(id)).filter(({ event_type }) => event_type.startsWith('mcp.'))
  expect(events.map(({ event_type, verdict, reason_code }) => [event_type, verdict, reason_code])).toEqual([
    ['mcp.offer_approved', 'allow', 'mcp.first_use'],
    ['mcp.offer_approved', 'allow', 'mcp.first_use'],
    ['mcp.offer_changed', 'deny', 'mcp.definition_changed'],
    ['mcp.offer_changed', 'deny', 'mcp.definition_added'],
  ])
  const [old, next] = [tool('a'), tool('a', 'Sends it to me')].map((each) => definitionOf('tool', each)?.digest)
  expect(events[2]?.details?.offers).toEqual([{ name: 'a', digest: next, approved_digest: old }])
  // The same again is nothing new.
  expect(await report(id, [tool('a', 'Sends it to me'), tool('d')])).toEqual({ approved: 0, held: 0 })
})

test('holds an offer that callers could not read, states why and refuses its approval', async () => {
  const { id } = await make()
  const misfit = { name: 'a', inputSchema: { type: 'array' } }
  expect(await report(id, [misfit])).toEqual({ approved: 0, held: 1 })
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  const why = 'inputSchema.type must be one of object'
  expect(offers).toMatchObject([{ status: 'held', misfit: why }])
  const [event] = (await eventsOf(id)).filter(({ event_type }) => event_type === 'mcp.offer_changed')
  expect(event?.details?.offers).toMatchObject([{ name: 'a', misfit: why }])
  const { kind, name, digest } = offers[0]
  const approval = await refused('POST', `${servers}/${id}/offers/approve`, { kind, name, digest })
  expect(approval).toEqual([422, 'invalid_parameter', 'digest'])
})

test('replaces one approved definition by another when a person approves it', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await report(id, [tool('a', 'Better words')])
  const digest = definitionOf('tool', tool('a', 'Better words'))?.digest
  const path = `${servers}/${id}/offers/approve`
  const approved = await call('POST', path, { kind: 'tool', name: 'a', digest })
  expect(approved.json).toMatchObject({ status: 'approved', definition: tool('a', 'Better words') })
  expect(await offersOf(id)).toEqual(['a held', 'a approved'])
  expect((await call('POST', path, { kind: 'tool', name: 'b', digest })).status).toBe(404)
  await call('POST', path, { kind: 'tool', name: 'a', digest })
  expect((await eventsOf(id)).at(-1)).toMatchObject({ event_type: 'mcp.offer_approved', details: { kind: 'tool' } })
})

test('shows how a held definition differs from the approved one', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await report(id, [{ ...tool('a', 'Sends it to me'), annotations: { readOnlyHint: true } }])
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  expect(offers.map(({ changes }: { changes: unknown }) => changes)).toEqual([
    null,
    [
      { path: 'description', before: '"Does it"', after: '"Sends it to me"' },
      { path: 'annotations', before: null, after: '{"readOnlyHint":true}' },
    ],
  ])
  const { kind, name, digest } = offers[1]
  const approved = await call('POST', `${servers}/${id}/offers/approve`, { kind, name, digest })
  expect(approved.json).toMatchObject({ status: 'approved', changes: null })
})

const waitingOf = async (id: string) => {
  const { mcp_servers } = (await call('GET', '/v1/catalog/waiting-mcp-offers')).json
  return mcp_servers.find((server: { id: string }) => server.id === id)
}

test('counts the changed and added definitions of a server that wait, until a person approves them', async () => {
  const { id, name } = await make()
  await report(id, [tool('a'), tool('b')])
  expect(await waitingOf(id)).toBeUndefined()
  const since = new Date(plane.clock.now()).toISOString()
  await report(id, [tool('a', 'Sends it to me')])
  plane.clock.advance(firstUseMilliseconds)
  await report(id, [tool('d')])
  expect(await waitingOf(id)).toEqual({ id, name, changed: 1, added: 1, names: ['d', 'a'], since })
  for (const offer of [tool('a', 'Sends it to me'), tool('d')]) {
    const digest = definitionOf('tool', offer)?.digest
    await call('POST', `${servers}/${id}/offers/approve`, { kind: 'tool', name: offer.name, digest })
  }
  expect(await waitingOf(id)).toBeUndefined()
})

test('does not count an earlier definition after a person approved the later one', async () => {
  const { id } = await make({ url: 'https://tools.example.com/mcp', approval: 'required' })
  await report(id, [tool('a', 'First')])
  await report(id, [tool('a', 'Second')])
  expect(await waitingOf(id)).toMatchObject({ changed: 0, added: 1, names: ['a'] })
  const digest = definitionOf('tool', tool('a', 'Second'))?.digest
  await call('POST', `${servers}/${id}/offers/approve`, { kind: 'tool', name: 'a', digest })
  expect(await waitingOf(id)).toBeUndefined()
})

test('holds a definition whose approval is withdrawn, even during the first use', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  const digest = definitionOf('tool', tool('a'))?.digest
  const body = { kind: 'tool', name: 'a', digest }
  const back = await call('POST', `${servers}/${id}/offers/withdraw`, body)
  expect(back.json).toMatchObject({ status: 'held', approved_digest: null })
  expect((await eventsOf(id)).at(-1)).toMatchObject({
    event_type: 'mcp.offer_withdrawn',
    details: { offers: [{ name: 'a', approved_digest: digest }] },
  })
  await report(id, [tool('a')])
  expect(await offersOf(id)).toEqual(['a held'])
  expect((await call('POST', `${servers}/${id}/offers/approve`, body)).json).toMatchObject({ status: 'approved' })
  expect(await refused('POST', `${servers}/${id}/offers/withdraw`, { ...body, name: 'b' })).toEqual([
    404,
    'not_found',
    null,
  ])
})

test('approves nothing before a person does when approval is required', async () => {
  const { id } = await make({ url: 'https://tools.example.com/mcp', approval: 'required' })
  expect(await report(id, [tool('a')])).toEqual({ approved: 0, held: 1 })
  await call('PATCH', `${servers}/${id}`, { approval: 'first_use' })
  expect(await report(id, [tool('a', 'Other'), tool('b')])).toEqual({ approved: 1, held: 1 })
})

test('begins the first use of a kind when its first offer appears', async () => {
  const { id } = await make()
  expect(await report(id, [], 'prompt')).toEqual({ approved: 0, held: 0 })
  plane.clock.advance(firstUseMilliseconds)
  expect(await report(id, [{ name: 'later' }], 'prompt')).toEqual({ approved: 0, held: 1 })
})

test('keeps the newest definitions of an offer that keeps changing', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  for (let turn = 0; turn < 9; turn++) await report(id, [tool('a', `turn ${turn}`)])
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  expect(offers.map(({ definition }: { definition: { description: string } }) => definition.description)).toEqual([
    'Does it',
    ...['turn 4', 'turn 5', 'turn 6', 'turn 7', 'turn 8'],
  ])
})

test('bounds what is stored of a server that offers endlessly during its first use', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await plane.store.ledger.write([
    {
      sql: `with recursive more (n) as (select 2 union all select n + 1 from more where n < ?)
        insert into mcp_offers (server_id, kind, name, digest, definition, first_seen_at)
          select ?, 'tool', 'x' || n, 'x' || n, '{}', 0 from more`,
      args: [offersLimit - 1, id],
    },
  ])
  expect(await report(id, [tool('b'), tool('c')])).toEqual({ approved: 1, held: 0 })
  expect(await report(id, [tool('d')])).toEqual({ approved: 0, held: 0 })
})

test('accepts decisions only for definitions in the canonical form of their digest', async () => {
  const { id } = await make()
  const gateway = { principal: anonymous, requestId: 'r' }
  const deps = { ...plane.dependencies, log: silentLog }
  for (const text of ['{"name": "a"}', '{"b":1,"a":2}', 'none', '[]']) {
    const taken = takeOffers(deps, gateway, { server_id: id, kind: 'tool', definitions: [text] })
    expect(taken).rejects.toMatchObject({ code: 'invalid_parameter' })
  }
})
