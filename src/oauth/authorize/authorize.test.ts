import { describe, expect, test } from 'bun:test'
import { challengeOf } from '../../members/programs/program-code.ts'
import type { Client } from '../clients/client.ts'
import { scopes } from '../scope.ts'
import { testRedirect, testVerifier } from '../testing/oauth.ts'
import { considerAuthorization } from './authorize.ts'
import { parametersOfObject } from './parameters.ts'
import { knownResources } from './resource.ts'

const issuer = 'https://gatehouse.example.com'
const gatewayUrl = 'https://models.example.com'

const client: Client = {
  id: 'the-client',
  name: 'A notebook',
  grantTypes: ['authorization_code', 'refresh_token'],
  redirectUris: [testRedirect, `${testRedirect}?tenant=1`, 'http://127.0.0.1:3000/callback'],
  scope: ['gateway:invoke', 'events:read'],
  createdAt: 0,
  createdBy: 'token:x',
  deactivatedAt: null,
  version: 1,
}

const good = {
  response_type: 'code',
  client_id: client.id,
  redirect_uri: testRedirect,
  scope: 'gateway:invoke',
  state: 'xyz',
  code_challenge: challengeOf(testVerifier),
  code_challenge_method: 'S256',
}

function consider(
  fields: Record<string, unknown>,
  facts: { client?: Client | null; active?: (typeof scopes)[number][] } = {},
) {
  const parameters = parametersOfObject({ ...good, ...fields })
  return considerAuthorization(
    { parameters, client, active: scopes, resources: knownResources({ baseUrl: issuer, gatewayUrl }), ...facts },
    issuer,
  )
}

/** What the application is told, or `page: …` where the person is shown the error instead. */
function outcome(...args: Parameters<typeof consider>): string {
  const evaluated = consider(...args)
  if (evaluated.kind === 'ask') return 'asked'
  if (evaluated.kind === 'page') return `page: ${evaluated.refusal.error}`
  const { origin, pathname, searchParams } = new URL(evaluated.to)
  expect([origin + pathname, searchParams.get('iss')]).toEqual([testRedirect, issuer])
  return `${searchParams.get('error')}, state ${searchParams.get('state')}`
}

test('shows a valid request to the person', () => {
  expect(consider({})).toEqual({
    kind: 'ask',
    authorization: {
      client,
      redirectUri: testRedirect,
      state: 'xyz',
      scope: ['gateway:invoke'],
      resources: [],
      codeChallenge: good.code_challenge,
    },
  })
})

describe('an error without a trusted redirect is shown and never redirected', () => {
  test('for no client_id, an empty one or two', () => {
    for (const client_id of [null, '', [client.id, client.id]])
      expect(outcome({ client_id })).toBe('page: invalid_request')
  })

  test('for a client that is not registered', () => {
    expect(outcome({ client_id: 'nobody' }, { client: null })).toBe('page: invalid_client')
  })

  test('for no redirect_uri, an empty one or two', () => {
    for (const redirect_uri of [null, '', [testRedirect, testRedirect]]) {
      expect(outcome({ redirect_uri })).toBe('page: invalid_request')
    }
  })

  test('for a redirect_uri that differs in anything from the registered one', () => {
    const variations = {
      scheme: 'http://app.example.com/callback',
      'case of the host': 'https://APP.example.com/callback',
      'case of the path': 'https://app.example.com/Callback',
      port: 'https://app.example.com:8443/callback',
      'default port': 'https://app.example.com:443/callback',
      path: 'https://app.example.com/callback/evil',
      'dot segments': 'https://app.example.com/x/../callback',
      query: 'https://app.example.com/callback?tenant=2',
      'more query': 'https://app.example.com/callback?tenant=1&next=evil',
      'trailing slash': 'https://app.example.com/callback/',
      'user information': 'https://app.example.com@evil.example/callback',
      'empty user information': 'https://@app.example.com/callback',
      fragment: 'https://app.example.com/callback#evil',
      'encoded character': 'https://app.example.com/%63allback',
      'encoded slash': 'https://app.example.com%2fcallback',
      'look-alike host': 'https://арр.example.com/callback',
      'longer host': 'https://app.example.com.evil.example/callback',
      'shorter host': 'https://example.com/callback',
      backslash: 'https://app.example.com\\@evil.example/callback',
      'space before': ' https://app.example.com/callback',
      'line feed': 'https://app.example.com/callback\n',
      'loopback port': 'http://127.0.0.1:3001/callback',
      'loopback name': 'http://localhost:3000/callback',
    }
    for (const [what, redirect_uri] of Object.entries(variations)) {
      expect([what, outcome({ redirect_uri })]).toEqual([what, 'page: invalid_request'])
    }
  })
})

describe('any other error redirects to the application with state and issuer', () => {
  test('for a parameter that comes twice', () => {
    for (const name of ['response_type', 'scope', 'code_challenge', 'code_challenge_method'] as const) {
      expect(outcome({ [name]: [good[name], good[name]] })).toBe('invalid_request, state xyz')
    }
    expect(outcome({ state: ['a', 'b'] })).toBe('invalid_request, state null')
  })

  test('for a state that is too long or cannot be returned unchanged', () => {
    const long = 'x'.repeat(4097)
    expect(outcome({ state: long })).toBe(`invalid_request, state ${long}`)
    expect(outcome({ state: '\ud800' })).toBe('invalid_request, state null')
  })

  test('for a deactivated client', () => {
    expect(outcome({}, { client: { ...client, deactivatedAt: 1 } })).toBe('unauthorized_client, state xyz')
  })

  test('for a client that is not registered for authorization codes', () => {
    const device = { ...client, grantTypes: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'] }
    expect(outcome({}, { client: device })).toBe('unauthorized_client, state xyz')
  })

  test('for no response_type', () => {
    expect(outcome({ response_type: '' })).toBe('invalid_request, state xyz')
  })

  test('for another response_type than code', () => {
    for (const response_type of ['token', 'code token', 'id_token', 'CODE']) {
      expect(outcome({ response_type })).toBe('unsupported_response_type, state xyz')
    }
  })

  test('for no code_challenge or a malformed one', () => {
    for (const code_challenge of [
      null,
      'short',
      `${good.code_challenge}=`,
      `${good.code_challenge}A`,
      'ä'.repeat(43),
    ]) {
      expect(outcome({ code_challenge })).toBe('invalid_request, state xyz')
    }
  })

  test('for a code_challenge_method other than S256, or none', () => {
    for (const code_challenge_method of [null, 'plain', 's256', 'S512']) {
      expect(outcome({ code_challenge_method })).toBe('invalid_request, state xyz')
    }
  })

  test('for a malformed scope', () => {
    for (const scope of [' gateway:invoke', 'gateway:invoke  events:read', 'gateway:invoke\tevents:read', '"']) {
      expect(outcome({ scope })).toBe('invalid_scope, state xyz')
    }
  })

  test('for a scope that the client is not registered for', () => {
    expect(outcome({ scope: 'gateway:invoke tokens:read' })).toBe('invalid_scope, state xyz')
    expect(outcome({ scope: 'tokens:write' })).toBe('invalid_scope, state xyz')
  })

  test('for a scope that is not active', () => {
    expect(outcome({ scope: 'events:read' }, { active: ['gateway:invoke'] })).toBe('invalid_scope, state xyz')
    expect(outcome({ scope: '' }, { active: ['mcp:invoke'] })).toBe('invalid_scope, state xyz')
  })

  test('for an unknown resource', () => {
    for (const resource of ['https://evil.example', `${gatewayUrl}/v1`, `${gatewayUrl}#x`, [gatewayUrl, 'x']]) {
      expect(outcome({ resource })).toBe('invalid_target, state xyz')
    }
  })
})

test('ignores unknown parameters, however often they come', () => {
  expect(outcome({ prompt: ['none', 'login'], audience: { nested: true } })).toBe('asked')
})

test('returns an optional state byte for byte', () => {
  expect(consider({ state: '' })).toMatchObject({ kind: 'ask', authorization: { state: null } })
  const state = 'a+b %2B/ü&=#?"\u2028'
  const evaluated = consider({ state, response_type: 'token' })
  expect(evaluated.kind === 'redirect' && new URL(evaluated.to).searchParams.get('state')).toBe(state)
})

test('asks for the active registered scopes without a scope parameter', () => {
  expect(consider({ scope: null }, { active: ['events:read', 'mcp:invoke'] })).toMatchObject({
    authorization: { scope: ['events:read'] },
  })
})

test('treats a resource with and without the slash of an empty path as the same', () => {
  const resource = [`${gatewayUrl}/`, gatewayUrl, `${gatewayUrl}/mcp`]
  expect(consider({ resource })).toMatchObject({ authorization: { resources: [gatewayUrl, `${gatewayUrl}/mcp`] } })
})
