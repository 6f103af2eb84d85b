/** People's own accounts at an MCP server, whose authorization server is a real one. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema, UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { challengeOf, newVerifier, tokensFor } from '../conformance/flow.ts'
import { fromConsentPage, type Person, person, register, signIn } from '../conformance/people.ts'
import { type ProtectedMcpServer, startProtectedMcpServer } from '../fakes/protected-mcp-server.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { authorizeThere, beginConnection, comeBack, connectAccount } from '../support/connect-account.ts'
import { eventually, until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { type Gatehouse, operate, run, startGatehouse } from '../support/harness.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const made = z.looseObject({ id: z.string() })
const scope = 'mcp:invoke'
let gatehouse: Gatehouse
let tracker: ProtectedMcpServer
let serverId: string
let clientId: string

beforeAll(async () => {
  gatehouse = await startGatehouse()
  tracker = await startProtectedMcpServer(await freePort())
  serverId = await addServer('tracker', tracker.url)
  clientId = await register(gatehouse, { scope })
})
afterAll(async () => {
  await gatehouse?.stop()
  await tracker?.[Symbol.asyncDispose]()
})

async function addServer(name: string, url: string, fields: object = {}): Promise<string> {
  const body = { name, url, personal: true, ...fields }
  return expectAnswer(await api(gatehouse, '/v1/catalog/mcp-servers', { body }), 201, made).id
}

async function callerOf(token: string, capabilities: object = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gatehouse.gatewayUrl}/mcp`), { requestInit }))
  return client
}

const tokenOf = async (who: Person): Promise<string> =>
  (await tokensFor(gatehouse, clientId, who, { scope })).access_token

const echo = (client: Client, say: string, server = 'tracker') =>
  client.callTool({ name: `${server}__echo`, arguments: { say } })

async function failureOf(call: Promise<unknown>): Promise<Error & { code?: number; data?: unknown }> {
  try {
    await call
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('The call succeeded')
}

const connectionsOf = (who: Person) =>
  api(gatehouse, '/v1/connections', { token: null, headers: { cookie: who.cookie } })

const disconnect = (who: Person, id: string) =>
  api(gatehouse, `/v1/connections/${id}`, {
    method: 'DELETE',
    token: null,
    headers: fromConsentPage(gatehouse, who),
  })

/** What a command line has after `auth login`. */
async function programSession(who: Person): Promise<string> {
  const verifier = newVerifier()
  const asked = {
    ...{ client_id: 'gatehouse-cli', redirect_uri: 'http://127.0.0.1:9/callback', state: 's' },
    ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
  }
  const headers = fromConsentPage(gatehouse, who)
  const decision = await api(gatehouse, '/v1/auth/programs/decision', {
    ...{ token: null, headers, body: { ...asked, approve: true } },
  })
  const { redirect_to } = expectAnswer(decision, 200, z.looseObject({ redirect_to: z.string() }))
  const code = new URL(redirect_to).searchParams.get('code')
  const { client_id, redirect_uri } = asked
  const given = await api(gatehouse, '/v1/auth/session/exchange-code', {
    ...{ token: null, body: { code, code_verifier: verifier, client_id, redirect_uri } },
  })
  return expectAnswer(given, 201, z.looseObject({ session_token: z.string() })).session_token
}

test('each person calls the server with an account of their own', async () => {
  const [ann, ben] = [await person(gatehouse, 'ann'), await person(gatehouse, 'ben')]
  expect((await connectAccount(gatehouse, ann, serverId, 'ann-there')).href).toEndWith(
    '/console/connections?server=tracker',
  )
  await connectAccount(gatehouse, ben, serverId, 'ben-there')
  const clients = [await callerOf(await tokenOf(ann)), await callerOf(await tokenOf(ben))] as const
  await eventually(async () => expect(JSON.stringify(await echo(clients[0], 'by ann'))).toContain('by ann'))
  tracker.callers.length = 0
  await echo(clients[0], 'again by ann')
  expect(new Set(tracker.callers)).toEqual(new Set(['ann-there']))
  tracker.callers.length = 0
  await echo(clients[1], 'by ben')
  expect(new Set(tracker.callers)).toEqual(new Set(['ben-there']))
  const listed = await connectionsOf(ann)
  expect(listed.body).toMatchObject({
    connections: [{ server: 'tracker', status: 'connected', issuer: tracker.issuer, scope: 'issues:read' }],
  })
  await Promise.all(clients.map((client) => client.close()))
})

test('the caller’s token never reaches the server, and the account’s token reaches neither caller nor record', async () => {
  const cas = await person(gatehouse, 'cas')
  await connectAccount(gatehouse, cas, serverId, 'cas-there')
  const token = await tokenOf(cas)
  const client = await callerOf(token)
  const answer = JSON.stringify(await echo(client, 'hello'))
  const sent = tracker.mcp.headers.map((headers) => headers.get('authorization') ?? '')
  const used = sent.at(-1)?.replace('Bearer ', '') ?? ''
  expect(sent.join()).not.toContain(token)
  expect(used).not.toBe('')
  expect(answer).not.toContain(used)
  expect(JSON.stringify(eventsInLedger(gatehouse))).not.toContain(used)
  expect(gatehouse.stderr()).not.toContain(used)
  await client.close()
})

test('a person without a connection is told where to connect, by an elicitation where the client opens addresses', async () => {
  const dan = await person(gatehouse, 'dan')
  const token = await tokenOf(dan)
  const address = `${gatehouse.ready.console_url}/connections?server=tracker`
  const plain = await callerOf(token)
  const refused = await failureOf(echo(plain, 'hello'))
  expect(refused.message).toContain(`Connect your account at the MCP server tracker first: ${address}`)
  expect(refused).toMatchObject({ code: -32_000, data: { code: 'mcp.not_connected', connect_url: address } })
  const opening = await callerOf(token, { elicitation: { url: {} } })
  const asked = await failureOf(echo(opening, 'hello'))
  expect(asked).toBeInstanceOf(UrlElicitationRequiredError)
  expect(asked).toMatchObject({ code: -32_042, data: { elicitations: [{ mode: 'url', url: address }] } })
  await connectAccount(gatehouse, dan, serverId, 'dan-there')
  await eventually(async () => expect(JSON.stringify(await echo(opening, 'now'))).toContain('now'))
  await Promise.all([plain.close(), opening.close()])
})

test('a list shows a tool that leads to the connection, and the server’s own tools once it is there', async () => {
  const ron = await person(gatehouse, 'ron')
  const client = await callerOf(await tokenOf(ron))
  const changed = Promise.withResolvers<void>()
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve())
  const address = `${gatehouse.ready.console_url}/connections?server=tracker`
  const before = (await client.listTools()).tools.filter(({ name }) => name.startsWith('tracker__'))
  expect(before.map(({ name }) => name)).toEqual(['tracker__connect_account'])
  expect(before[0]?.description).toContain(address)
  const refused = await failureOf(client.callTool({ name: 'tracker__connect_account', arguments: {} }))
  expect(refused.message).toContain(address)
  await connectAccount(gatehouse, ron, serverId, 'ron-there')
  expect(JSON.stringify(await client.callTool({ name: 'tracker__connect_account' }))).toContain('list the tools')
  await changed.promise
  const names = (await client.listTools()).tools.map(({ name }) => name)
  expect(names).toContain('tracker__echo')
  expect(names).not.toContain('tracker__connect_account')
  await client.close()
})

test('a service token, and a token that somebody made in a person’s name, are nobody’s account', async () => {
  const eve = await person(gatehouse, 'eve')
  await connectAccount(gatehouse, eve, serverId, 'eve-there')
  const service = await createToken(gatehouse)
  const inHerName = await createToken(gatehouse, { bindings: { user_id: eve.id } })
  tracker.callers.length = 0
  for (const { token_value: token } of [service, inHerName]) {
    const client = await callerOf(token)
    const refused = await failureOf(echo(client, 'hello'))
    expect(refused).toMatchObject({ data: { code: 'mcp.no_person' } })
    await client.close()
  }
  expect(tracker.callers).not.toContain('eve-there')
})

test('a token that a person made for themselves is theirs', async () => {
  const flo = await person(gatehouse, 'flo', 'admin')
  await connectAccount(gatehouse, flo, serverId, 'flo-there')
  const headers = fromConsentPage(gatehouse, flo)
  const body = { name: 'mine', purpose: 'general', bindings: { user_id: flo.id } }
  const answer = await api(gatehouse, '/v1/tokens', { token: null, headers, body })
  const { token_value } = expectAnswer(answer, 201, z.looseObject({ token_value: z.string() }))
  const client = await callerOf(token_value)
  await eventually(async () => expect(JSON.stringify(await echo(client, 'mine'))).toContain('mine'))
  await client.close()
})

test('a disconnected account stops working within seconds, here and at its authorization server', async () => {
  const gus = await person(gatehouse, 'gus')
  await connectAccount(gatehouse, gus, serverId, 'gus-there')
  const client = await callerOf(await tokenOf(gus))
  await eventually(async () => expect(JSON.stringify(await echo(client, 'before'))).toContain('before'))
  const used = tracker.mcp.headers.at(-1)?.get('authorization') ?? ''
  tracker.asked.length = 0
  const ended = await disconnect(gus, serverId)
  expect(ended).toMatchObject({ status: 200, body: { status: 'not_connected' } })
  expect(tracker.asked).toEqual(['/token/revocation', '/token/revocation'])
  const direct = await fetch(tracker.url, { method: 'POST', headers: { authorization: used }, body: '{}' })
  expect(direct.status).toBe(401)
  const refused = await failureOf(echo(client, 'after'))
  expect(refused).toMatchObject({ data: { code: 'mcp.not_connected' } })
  await client.close()
})

test('an account that is connected again leaves no old token behind at its authorization server', async () => {
  const uma = await person(gatehouse, 'uma')
  await connectAccount(gatehouse, uma, serverId, 'uma-there')
  const client = await callerOf(await tokenOf(uma))
  await eventually(async () => expect(JSON.stringify(await echo(client, 'before'))).toContain('before'))
  const used = tracker.mcp.headers.at(-1)?.get('authorization') ?? ''
  tracker.asked.length = 0
  await connectAccount(gatehouse, uma, serverId, 'uma-there')
  expect(tracker.asked).toEqual(['/token/revocation', '/token/revocation'])
  const direct = await fetch(tracker.url, { method: 'POST', headers: { authorization: used }, body: '{}' })
  expect(direct.status).toBe(401)
  expect(JSON.stringify(await echo(client, 'after'))).toContain('after')
  await client.close()
})

test('where a revocation ends the new approval too, the person is told, and connects once more', async () => {
  const vic = await person(gatehouse, 'vic')
  tracker.oneApproval.add('vic-there')
  const pages = []
  for (const _ of [1, 2, 3]) pages.push(await connectAccount(gatehouse, vic, serverId, 'vic-there'))
  expect(pages.map((page) => page.searchParams.get('refused'))).toEqual([null, 'provider_denied', null])
  expect((await connectionsOf(vic)).body).toMatchObject({ connections: [{ status: 'connected' }] })
  const client = await callerOf(await tokenOf(vic))
  await eventually(async () => expect(JSON.stringify(await echo(client, 'works'))).toContain('works'))
  await client.close()
})

test('a disabled person’s connections end with the person', async () => {
  const hal = await person(gatehouse, 'hal')
  await connectAccount(gatehouse, hal, serverId, 'hal-there')
  tracker.asked.length = 0
  expect((await api(gatehouse, `/v1/users/${hal.id}`, { method: 'PATCH', body: { status: 'disabled' } })).status).toBe(
    200,
  )
  await until('the tokens are revoked there', () => tracker.asked.includes('/token/revocation'))
  await api(gatehouse, `/v1/users/${hal.id}`, { method: 'PATCH', body: { status: 'active' } })
  const back = await signIn(gatehouse, hal.email)
  expect((await connectionsOf({ ...hal, ...back })).body).toMatchObject({ connections: [{ status: 'not_connected' }] })
})

test('an account that the server refuses stops nobody else', async () => {
  const [nia, oda] = [await person(gatehouse, 'nia'), await person(gatehouse, 'oda')]
  await connectAccount(gatehouse, nia, serverId, 'nia-there')
  await connectAccount(gatehouse, oda, serverId, 'oda-there')
  tracker.forbidden.add('nia-there')
  const [refused, other] = [await callerOf(await tokenOf(nia)), await callerOf(await tokenOf(oda))]
  for (let call = 0; call < 10; call += 1) {
    expect(await failureOf(echo(refused, 'hello'))).toMatchObject({ data: { code: 'mcp.account_refused' } })
  }
  expect(JSON.stringify(await echo(other, 'not me'))).toContain('not me')
  await Promise.all([refused.close(), other.close()])
})

test('an account that lacks scope at the server is connected again for more', async () => {
  const qia = await person(gatehouse, 'qia')
  tracker.readers.add('qia-there')
  await connectAccount(gatehouse, qia, serverId, 'qia-there')
  const client = await callerOf(await tokenOf(qia), { elicitation: { url: {} } })
  const refused = await failureOf(echo(client, 'hello'))
  const address = `${gatehouse.ready.console_url}/connections?server=tracker&scope=issues%3Awrite`
  expect(refused).toMatchObject({
    code: -32_042,
    data: { elicitations: [{ url: address }] },
  })
  const { address: there, cookie } = await beginConnection(gatehouse, qia, serverId, { scope: 'issues:write' })
  expect(new URL(there).searchParams.get('scope')).toContain('issues:read issues:write')
  await comeBack(await authorizeThere(there, gatehouse.baseUrl, 'qia-there'), [qia.cookie, cookie])
  await eventually(async () => expect(JSON.stringify(await echo(client, 'now'))).toContain('now'))
  await client.close()
})

test('a token that the server refuses is refreshed, and a server that refuses all gets one refresh in ten seconds', async () => {
  const pia = await person(gatehouse, 'pia')
  await connectAccount(gatehouse, pia, serverId, 'pia-there')
  const client = await callerOf(await tokenOf(pia))
  await eventually(async () => expect(JSON.stringify(await echo(client, 'before'))).toContain('before'))
  const before = tracker.refreshes
  tracker.refuseTokens()
  await Bun.sleep(1100)
  expect(JSON.stringify(await echo(client, 'after'))).toContain('after')
  expect(tracker.refreshes - before).toBe(1)
  tracker.refuseTokens()
  for (let call = 0; call < 5; call += 1) {
    expect(await failureOf(echo(client, 'again'))).toMatchObject({ data: { code: 'dependency_unavailable' } })
  }
  expect(tracker.refreshes - before).toBe(1)
  await client.close()
})

test('the command line lists a person’s connections and ends one, with the session of a program', async () => {
  const max = await person(gatehouse, 'max')
  await connectAccount(gatehouse, max, serverId, 'max-there')
  const env = { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: await programSession(max) }
  const listed = await run(['connection', 'list'], { env })
  expect(listed.stdout).toMatch(/tracker +connected +issues:read .*connections\?server=tracker/)
  const ended = await run(['connection', 'disconnect', 'tracker'], { env })
  expect([ended.code, ended.stdout]).toEqual([0, expect.stringMatching(/status +not_connected/)])
  const begun = await api(gatehouse, `/v1/connections/${serverId}/begin`, { token: env.SERVICE_API_TOKEN, body: {} })
  expect(begun.status).toBe(403)
  const asToken = await operate(gatehouse, 'connection', 'list')
  expect(asToken.stderr).toContain('Only a person who is signed in can do this')
})

test('an answer counts only in the browser that asked, and for the person who asked', async () => {
  const [ida, jon] = [await person(gatehouse, 'ida'), await person(gatehouse, 'jon')]
  const { address, cookie } = await beginConnection(gatehouse, ida, serverId)
  const callback = await authorizeThere(address, gatehouse.baseUrl, 'ida-there')
  const inOther = await comeBack(callback, [jon.cookie])
  expect(inOther.searchParams.get('refused')).toBe('attempt_missing')
  const asOther = await comeBack(callback, [jon.cookie, cookie])
  expect(asOther.searchParams.get('refused')).toBe('attempt_missing')
  expect((await connectionsOf(jon)).body).toMatchObject({ connections: [{ status: 'not_connected' }] })
  // The answer of one server is never another's: each has an address of return of its own (RFC 9700 section 4.4).
  const secondId = await addServer('second', tracker.url)
  const elsewhere = new URL(callback)
  elsewhere.pathname = `/v1/connections/callback/${secondId}`
  const second = await beginConnection(gatehouse, ida, secondId)
  for (const attempt of [cookie, second.cookie]) {
    const mixedUp = await comeBack(elsewhere, [ida.cookie, attempt])
    expect(mixedUp.searchParams.get('refused')).toBe('attempt_missing')
  }
  await api(gatehouse, `/v1/catalog/mcp-servers/${secondId}`, { method: 'DELETE' })
  const own = await comeBack(callback, [ida.cookie, cookie])
  expect(own.searchParams.get('refused')).toBe(null)
  expect((await connectionsOf(ida)).body).toMatchObject({ connections: [{ status: 'connected' }] })
})

test('many calls at the end of a token’s life are one refresh; an approval that is over ends the connection', async () => {
  await using brief = await startProtectedMcpServer(await freePort(), { accessTokenSeconds: 61 })
  const id = await addServer('brief', brief.url)
  const kim = await person(gatehouse, 'kim')
  await connectAccount(gatehouse, kim, id, 'kim-there')
  const client = await callerOf(await tokenOf(kim))
  await eventually(async () => expect(JSON.stringify(await echo(client, 'first', 'brief'))).toContain('first'))
  const before = brief.refreshes
  // A minute before its end it counts as over; the gateway asks after five seconds.
  await Bun.sleep(6000)
  await Promise.all(Array.from({ length: 20 }, (_, call) => echo(client, `call ${call}`, 'brief')))
  expect(brief.refreshes - before).toBe(1)
  await brief.withdraw('kim-there')
  await eventually(async () => {
    const refused = await failureOf(echo(client, 'last', 'brief'))
    expect(refused).toMatchObject({ data: { code: 'mcp.not_connected' } })
  })
  expect(eventsInLedger(gatehouse).map(({ event_type: type }) => type)).toContain('mcp_connection.lost')
  await client.close()
  await api(gatehouse, `/v1/catalog/mcp-servers/${id}`, { method: 'DELETE' })
})

test('a client that an operator registered is used at its issuer only', async () => {
  const port = await freePort()
  const client = { client_id: 'ours', client_secret: 'the secret of our client there, long enough' }
  const id = await addServer('configured', `http://127.0.0.1:${port}/mcp`, {
    personal_oauth: { ...client, issuer: `http://127.0.0.1:${port}`, scope: 'issues:write' },
  })
  const redirect_uris = [`${gatehouse.baseUrl}/v1/connections/callback/${id}`]
  await using other = await startProtectedMcpServer(port, { client: { ...client, redirect_uris } })
  const lea = await person(gatehouse, 'lea')
  await connectAccount(gatehouse, lea, id, 'lea-there')
  expect(other.asked).not.toContain('/reg')
  expect((await connectionsOf(lea)).body).toMatchObject({
    connections: [{ server: 'configured', status: 'connected', scope: 'issues:write' }, { server: 'tracker' }],
  })
  const shown = await api(gatehouse, `/v1/catalog/mcp-servers/${id}`)
  expect(JSON.stringify(shown.body)).not.toContain(client.client_secret)
  const moved = { personal_oauth: { client_id: 'ours', issuer: tracker.issuer } }
  await api(gatehouse, `/v1/catalog/mcp-servers/${id}`, { method: 'PATCH', body: moved })
  const begin = await fetch(`${gatehouse.baseUrl}/v1/connections/${id}/begin`, {
    method: 'POST',
    headers: fromConsentPage(gatehouse, lea),
    body: '{}',
  })
  expect(begin.status).toBe(503)
  expect(await begin.text()).toContain('names another authorization server than its record does')
  await api(gatehouse, `/v1/catalog/mcp-servers/${id}`, { method: 'DELETE' })
})
