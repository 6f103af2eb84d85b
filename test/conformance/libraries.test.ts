/** Two libraries that application writers use run the whole flow against the executable, by its metadata alone. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { chat } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest } from '../support/recorded.ts'
import { opens } from './flow.ts'
import { decide, type Person, person, redirectUri, register } from './people.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let ada: Person

beforeAll(async () => {
  gatehouse = await startGatehouse()
  ada = await person(gatehouse, 'ada')
}, 240_000)
afterAll(() => gatehouse?.stop())

/** Plain HTTP on loopback is what the tests serve. */
const insecure = { [oauth.allowInsecureRequests]: true }

test('openid-client discovers the server, gets tokens, calls, refreshes and revokes', async () => {
  const clientId = await register(gatehouse)
  const config = await client.discovery(new URL(gatehouse.baseUrl), clientId, undefined, client.None(), {
    algorithm: 'oauth2',
    execute: [client.allowInsecureRequests],
  })
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'gateway:invoke tokens:read',
    state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  expect(address.origin + address.pathname).toBe(`${gatehouse.baseUrl}/console/oauth/authorize`)
  const back = await decide(gatehouse, ada, address)
  const tokens = await client.authorizationCodeGrant(config, back, { pkceCodeVerifier, expectedState })
  expect(tokens.scope).toBe('gateway:invoke tokens:read')
  const called = await client.fetchProtectedResource(
    config,
    tokens.access_token,
    new URL(`${gatehouse.baseUrl}/v1/tokens`),
    'GET',
  )
  expect(called.status).toBe(200)
  const requestId = crypto.randomUUID()
  const answer = await chat(gatehouse, { token: tokens.access_token, model: 'simulator/echo', requestId })
  expect(answer.status).toBe(200)
  const [outcome] = (await eventsOfRequest(gatehouse, requestId)).filter(
    ({ event_type }) => event_type === 'gateway.request.outcome',
  )
  expect(outcome?.event_attribution).toMatchObject({ user_id: ada.id, oauth_client_id: clientId })
  expect(outcome?.event_cost_attribution).toMatchObject({ spend_owner: `user:${ada.id}` })
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', { scope: 'gateway:invoke' })
  expect(refreshed.scope).toBe('gateway:invoke')
  expect(await opens(gatehouse, refreshed.access_token)).toEqual({ api: false, gateway: true })
  await client.tokenRevocation(config, refreshed.refresh_token ?? '', { token_type_hint: 'refresh_token' })
  for (const { access_token } of [tokens, refreshed]) {
    expect(await opens(gatehouse, access_token)).toEqual({ api: false, gateway: false })
  }
})

test('openid-client receives access_denied when the person denies', async () => {
  const clientId = await register(gatehouse)
  const config = await client.discovery(new URL(gatehouse.baseUrl), clientId, undefined, client.None(), {
    algorithm: 'oauth2',
    execute: [client.allowInsecureRequests],
  })
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const back = await decide(gatehouse, ada, address, false)
  await expect(client.authorizationCodeGrant(config, back, { pkceCodeVerifier })).rejects.toMatchObject({
    error: 'access_denied',
  })
})

test('oauth4webapi discovers the server from the gateway and gets a token for the gateway only', async () => {
  const clientId = await register(gatehouse)
  const resource = new URL(gatehouse.gatewayUrl)
  const protectedResource = await oauth.processResourceDiscoveryResponse(
    resource,
    await oauth.resourceDiscoveryRequest(resource, insecure),
  )
  const issuer = new URL(protectedResource.authorization_servers?.[0] ?? '')
  const server = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' }),
  )
  expect(server.code_challenge_methods_supported).toEqual(['S256'])
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const address = new URL(server.authorization_endpoint ?? '')
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: protectedResource.scopes_supported?.join(' ') ?? '',
    resource: protectedResource.resource,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })) {
    address.searchParams.set(name, value)
  }
  const back = await decide(gatehouse, ada, address)
  const application: oauth.Client = { client_id: clientId }
  const parameters = oauth.validateAuthResponse(server, application, back, state)
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    application,
    oauth.None(),
    parameters,
    redirectUri,
    verifier,
    insecure,
  )
  const tokens = await oauth.processAuthorizationCodeResponse(server, application, answer)
  expect(tokens.token_type).toBe('bearer')
  expect(await opens(gatehouse, tokens.access_token)).toEqual({ api: false, gateway: true })
  const again = await oauth.refreshTokenGrantRequest(
    server,
    application,
    oauth.None(),
    tokens.refresh_token ?? '',
    insecure,
  )
  const refreshed = await oauth.processRefreshTokenResponse(server, application, again)
  expect(await opens(gatehouse, refreshed.access_token)).toEqual({ api: false, gateway: true })
  const revocation = await oauth.revocationRequest(server, application, oauth.None(), refreshed.access_token, insecure)
  await oauth.processRevocationResponse(revocation)
  expect(await opens(gatehouse, refreshed.access_token)).toEqual({ api: false, gateway: false })
})

test('oauth4webapi reads the challenges of both listeners', async () => {
  for (const [address, origin] of [
    [`${gatehouse.baseUrl}/v1/tokens`, gatehouse.baseUrl],
    [`${gatehouse.gatewayUrl}/v1/models`, gatehouse.gatewayUrl],
  ] as const) {
    const resource_metadata = `${origin}/.well-known/oauth-protected-resource`
    const none = await fetch(address)
    expect(none.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${resource_metadata}"`)
    const bad = await oauth
      .protectedResourceRequest('not-a-token', 'GET', new URL(address), undefined, undefined, insecure)
      .catch((error: unknown) => error)
    expect(bad).toBeInstanceOf(oauth.WWWAuthenticateChallengeError)
    expect(bad instanceof oauth.WWWAuthenticateChallengeError && bad.cause[0]?.parameters).toMatchObject({
      error: 'invalid_token',
      resource_metadata,
    })
  }
})
