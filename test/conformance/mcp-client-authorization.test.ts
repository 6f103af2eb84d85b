/** The authorization flow of the official MCP client, from the gateway's first refusal to a call, as clients run it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { OfficialMcpServer } from '../fakes/official-mcp-server.ts'
import { api } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { tokensFor } from './flow.ts'
import { decide, type Person, person, redirectUri, register } from './people.ts'

setDefaultTimeout(120_000)

const tools = new OfficialMcpServer()
let gatehouse: Gatehouse
let ada: Person

beforeAll(async () => {
  gatehouse = await startGatehouse({ env: { SERVICE_OAUTH_DYNAMIC_REGISTRATION: 'allowed' } })
  await api(gatehouse, '/v1/catalog/mcp-servers', { body: { name: 'tools', url: tools.url } })
  ada = await person(gatehouse, 'ada')
})
afterAll(async () => {
  await gatehouse?.stop()
  await tools.stop()
})

/** What a client keeps, and where it sends its person. */
class Kept implements OAuthClientProvider {
  client: OAuthClientInformationMixed | undefined
  given: OAuthTokens | undefined
  asked: URL | null = null
  #verifier = ''
  readonly redirectUrl = redirectUri
  readonly clientMetadata = {
    client_name: 'An agent',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: 'none',
  }

  clientInformation() {
    return this.client
  }
  saveClientInformation(client: OAuthClientInformationMixed) {
    this.client = client
  }
  tokens() {
    return this.given
  }
  saveTokens(tokens: OAuthTokens) {
    this.given = tokens
  }
  redirectToAuthorization(address: URL) {
    this.asked = address
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  codeVerifier() {
    return this.#verifier
  }
}

const transportOf = (kept: Kept) =>
  new StreamableHTTPClientTransport(new URL(`${gatehouse.gatewayUrl}/mcp`), { authProvider: kept })

const clientOf = () => new Client({ name: 'test', version: '1' })

/** Answers the page that the client sent its person to, and gives the code back to the client. */
async function approve(kept: Kept, transport: StreamableHTTPClientTransport): Promise<URLSearchParams> {
  const asked = kept.asked
  if (asked === null) throw new Error('The client sent its person nowhere')
  kept.asked = null
  const back = await decide(gatehouse, ada, asked)
  await transport.finishAuth(back.searchParams.get('code') ?? '')
  return asked.searchParams
}

test('a client that nobody registered finds everything by itself, asks its person, and calls', async () => {
  const kept = new Kept()
  const first = transportOf(kept)
  expect(
    await clientOf()
      .connect(first)
      .catch((error: unknown) => error),
  ).toBeInstanceOf(UnauthorizedError)
  const asked = await approve(kept, first)
  expect(Object.fromEntries(asked)).toMatchObject({
    scope: 'mcp:invoke',
    resource: `${gatehouse.gatewayUrl}/mcp`,
    code_challenge_method: 'S256',
  })
  expect(kept.given?.scope).toBe('mcp:invoke')
  const client = clientOf()
  await client.connect(transportOf(kept))
  await eventually(async () =>
    expect(JSON.stringify(await client.callTool({ name: 'tools__echo', arguments: { say: 'hello' } }))).toContain(
      'hello',
    ),
  )
  await client.close()
  // Bound to its audience: it opens nothing but /mcp (RFC 8707).
  const elsewhere = { authorization: `Bearer ${kept.given?.access_token}` }
  expect((await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers: elsewhere })).status).toBe(401)
  expect((await fetch(`${gatehouse.baseUrl}/v1/tokens`, { headers: elsewhere })).status).toBe(401)
})

test('a client whose token lacks the scope asks its person for more, and goes on', async () => {
  const scope = 'gateway:invoke mcp:invoke'
  const kept = new Kept()
  const clientId = await register(gatehouse, { scope })
  kept.client = { client_id: clientId }
  const { access_token } = await tokensFor(gatehouse, clientId, ada, { scope: 'gateway:invoke' })
  // With a refresh token this client would refresh first, which widens no scope.
  kept.given = { token_type: 'Bearer', access_token }
  const first = transportOf(kept)
  expect(
    await clientOf()
      .connect(first)
      .catch((error: unknown) => error),
  ).toBeInstanceOf(UnauthorizedError)
  const asked = await approve(kept, first)
  expect(asked.get('scope')?.split(' ')).toContain('mcp:invoke')
  const client = clientOf()
  await client.connect(transportOf(kept))
  expect((await client.listTools()).tools.length).toBeGreaterThan(0)
  await client.close()
})

test('a token of another authorization server, or for another resource, is refused', async () => {
  const clientId = await register(gatehouse, { scope: 'mcp:invoke' })
  const resource = gatehouse.gatewayUrl
  const { access_token } = await tokensFor(gatehouse, clientId, ada, { scope: 'mcp:invoke', resource })
  for (const token of [access_token, 'gho_a_token_of_somebody_else', 'eyJhbGciOiJub25lIn0.e30.']) {
    const answer = await fetch(`${gatehouse.gatewayUrl}/mcp`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    expect([token, answer.status]).toEqual([token, 401])
    expect(answer.headers.get('www-authenticate')).toContain('error="invalid_token"')
  }
})
