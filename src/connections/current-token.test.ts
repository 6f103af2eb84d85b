/** The access tokens of connections: refresh once over all control planes, and what ends a connection. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../events/testing/recorded.ts'
import { anonymous } from '../identity/principal.ts'
import { silentLog } from '../lib/log/log.ts'
import type { MemberDependencies } from '../members/dependencies.ts'
import { temporaryControlPlane, testOrigin } from '../members/testing/temporary-control-plane.ts'
import { connectionEvent } from './connection-event.ts'
import { createCurrentTokens } from './current-token.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { disconnectOwner } from './end-connections.ts'
import type { PersonalServer } from './personal-server.ts'
import { endConnectionsOf, findConnection, keepConnection, openSecrets, sealSecrets } from './stored-connection.ts'

const issuer = 'https://login.example.com'
const server: PersonalServer = { id: 'one', name: 'tracker', url: 'https://mcp.example.com/mcp', personal: {} }
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  revocation_endpoint: `${issuer}/revoke`,
  code_challenge_methods_supported: ['S256'],
}

let plane: Awaited<ReturnType<typeof temporaryControlPlane>>
let dependencies: ConnectionDependencies
let userId: string
let calls: { path: string; form: URLSearchParams }[]
/** What the token endpoint answers, and how long it takes. */
let answer: () => Promise<Response>

beforeAll(async () => {
  const made: { members?: MemberDependencies } = {}
  plane = await temporaryControlPlane(testOrigin, (members) => {
    made.members = members
    return []
  })
  if (made.members === undefined) throw new Error('The routes were not made')
  dependencies = {
    ...made.members,
    log: silentLog,
    resolve: async () => ['93.184.216.34'],
    async fetch(url, { body }) {
      const { pathname } = new URL(url)
      if (pathname.startsWith('/.well-known/')) return Response.json(metadata)
      calls.push({ path: pathname, form: new URLSearchParams(String(body)) })
      return pathname === '/token' ? await answer() : new Response(null, { status: 200 })
    },
  }
  userId = await plane.addPerson('ada@example.com', 'member')
})
afterAll(() => plane.remove())

const fresh = (fields: object = {}) =>
  Response.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600, refresh_token: 'r2', ...fields })

beforeEach(async () => {
  calls = []
  answer = async () => fresh()
  await connect({ expiresIn: 30 })
})

interface Connected {
  expiresIn: number
  refreshToken?: string | null
  /** Milliseconds by which it was made after now. */
  later?: number
}

/** A connection whose access token has so many seconds left. */
async function connect({ expiresIn, refreshToken = 'r1', later = 0 }: Connected) {
  const { ledger, masterKey, clock } = dependencies
  const owner = { userId, serverId: server.id }
  const sealed = sealSecrets(masterKey, owner, {
    ...{ url: server.url, named_issuer: null, resource: server.url, client_id: 'us', client_secret: null },
    ...{ access_token: 'first', refresh_token: refreshToken },
  })
  const now = clock.now()
  const never = { scope: 'read', refreshedAt: null, refreshingUntil: null, endedAt: null }
  await ledger.write([
    keepConnection({ ...owner, sealed, issuer, connectedAt: now + later, expiresAt: now + 1000 * expiresIn, ...never }),
  ])
}

const current = (tokens = createCurrentTokens(dependencies), refused: string | null = null) =>
  tokens.of(server, userId, refused)
const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

test('gives the token that is there, and refreshes it shortly before its end with the resource it is for', async () => {
  await connect({ expiresIn: 61 })
  expect(await current()).toMatchObject({ accessToken: 'first' })
  expect(calls).toEqual([])
  await connect({ expiresIn: 59 })
  expect(await current()).toMatchObject({ accessToken: 'second' })
  expect(Object.fromEntries(calls[0]?.form ?? [])).toMatchObject({
    grant_type: 'refresh_token',
    refresh_token: 'r1',
    resource: server.url,
    client_id: 'us',
  })
})

test('refreshes once for many calls of two control planes', async () => {
  answer = async () => {
    await Bun.sleep(300)
    return fresh()
  }
  const planes = [createCurrentTokens(dependencies), createCurrentTokens(dependencies)]
  const given = await Promise.all(Array.from({ length: 10 }, (_, n) => current(planes[n % 2])))
  expect(given.map((token) => (token === null || token === 'unavailable' ? token : token.accessToken))).toEqual(
    Array.from({ length: 10 }, () => 'second'),
  )
  expect(calls.map(({ path }) => path)).toEqual(['/token'])
})

test('keeps the refresh token that is there where the answer brings none, and a new one where it does', async () => {
  const kept = async () => {
    const row = await findConnection(dependencies.ledger, { userId, serverId: server.id })
    return row === null ? null : openSecrets(dependencies.masterKey, row).refresh_token
  }
  answer = async () => fresh({ refresh_token: undefined })
  await current()
  expect(await kept()).toBe('r1')
  await connect({ expiresIn: 30 })
  answer = async () => fresh()
  await current()
  expect(await kept()).toBe('r2')
})

test('goes on with a token that is still good while the authorization server fails, and has none after that', async () => {
  answer = async () => new Response('no', { status: 503 })
  expect(await current()).toMatchObject({ accessToken: 'first' })
  await connect({ expiresIn: 0 })
  expect(await current()).toBe('unavailable')
  answer = async () => fresh()
  expect(await current()).toMatchObject({ accessToken: 'second' })
})

test('refreshes a refused token at once, and not again within ten seconds', async () => {
  await connect({ expiresIn: 3600 })
  const tokens = createCurrentTokens(dependencies)
  expect(await current(tokens, sha256('of somebody else'))).toMatchObject({ accessToken: 'first' })
  expect(await current(tokens, sha256('first'))).toMatchObject({ accessToken: 'second' })
  expect(await current(tokens, sha256('second'))).toBe('unavailable')
  expect(calls.length).toBe(1)
})

test('ends a connection whose approval is over, or that cannot be refreshed: its tokens are revoked and gone', async () => {
  answer = async () => Response.json({ error: 'invalid_grant' }, { status: 400 })
  expect(await current()).toBe(null)
  expect(calls.map(({ path, form }) => [path, form.get('token')])).toEqual([
    ['/token', null],
    ['/revoke', 'r1'],
    ['/revoke', 'first'],
  ])
  await connect({ expiresIn: 0, refreshToken: null })
  expect(await current()).toBe(null)
  expect(await findConnection(dependencies.ledger, { userId, serverId: server.id })).toBe(null)
  const lost = await recordedEvents(dependencies.ledger, 'mcp_connection.lost')
  expect(lost.map(({ reason_code }) => reason_code)).toEqual(['mcp_connection.withdrawn', 'mcp_connection.expired'])
  expect(JSON.stringify(lost)).not.toMatch(/"(?:first|r1)"/)
})

test('gives nothing once the connection has ended, or the server has moved', async () => {
  const tokens = createCurrentTokens(dependencies)
  expect(await tokens.of({ ...server, url: 'https://evil.example.com/mcp' }, userId, null)).toBe(null)
  await dependencies.ledger.write([endConnectionsOf(userId, dependencies.clock.now())])
  expect(await current(tokens)).toBe(null)
  expect(calls).toEqual([])
})

test('gives no token of a connection that its person ends while it is refreshed, and revokes what was given', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: refreshing, resolve: refreshBegan } = Promise.withResolvers<void>()
  answer = async () => {
    refreshBegan()
    await ended
    return fresh()
  }
  const given = current()
  await refreshing
  await disconnectOwner(dependencies, { userId, serverId: server.id }, await endEvent())
  end()
  expect(await given).toBe(null)
  expect(calls.slice(1).map(({ path, form }) => [path, form.get('token')])).toEqual(
    ['r1', 'first', 'r2', 'second'].map((token) => ['/revoke', token]),
  )
})

test('gives the token of the account that its person connects while another is refreshed', async () => {
  answer = async () => {
    await connect({ expiresIn: 3600, later: 1 })
    return fresh()
  }
  expect(await current()).toMatchObject({ accessToken: 'first' })
  expect(calls.slice(1).map(({ form }) => form.get('token'))).toEqual(['r2', 'second'])
})

test('ends a connection whose tokens were refreshed while its person disconnected', async () => {
  const { recorder } = dependencies
  const refreshFirst: Pick<typeof recorder, 'change'> = {
    async change(change) {
      await current()
      return await recorder.change(change)
    },
  }
  const racing = { ...dependencies, recorder: Object.setPrototypeOf(refreshFirst, recorder) }
  await disconnectOwner(racing, { userId, serverId: server.id }, await endEvent())
  expect(await findConnection(dependencies.ledger, { userId, serverId: server.id })).toBe(null)
  expect(calls.slice(1).map(({ form }) => form.get('token'))).toEqual(['r2', 'second'])
})

const endEvent = () =>
  connectionEvent(dependencies, {
    ...{ type: 'mcp_connection.ended', principal: anonymous, requestId: dependencies.newId(), userId, server },
  })
