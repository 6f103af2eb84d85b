/**
 * What somebody might try against the flow, each as a test that says what comes of it (RFC 9700 section 4). Redirect
 * URIs and every single check are tried in `src/oauth/`; here the executable as a whole answers.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import * as oauth from 'oauth4webapi'
import { api, parseOrKeep } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { signal } from '../support/processes.ts'
import {
  approvedCode,
  authorizationUrl,
  challengeOf,
  codeRequest,
  newVerifier,
  opens,
  post,
  refresh,
  type Tokens,
  tokensFor,
  tokensOf,
} from './flow.ts'
import { decide, fromConsentPage, type Person, person, queryOf, redirectUri, register } from './people.ts'

setDefaultTimeout(180_000)

let gatehouse: Gatehouse
let ada: Person
let clientId: string

beforeAll(async () => {
  gatehouse = await startGatehouse()
  ada = await person(gatehouse, 'ada')
  clientId = await register(gatehouse)
}, 240_000)
afterAll(() => gatehouse?.stop())

const redeem = (request: Readonly<Record<string, string>>) => post(gatehouse, '/v1/oauth/token', request)
const nothing = { api: false, gateway: false }
const everything = { api: true, gateway: true }

const consent = async (path: 'preview' | 'decision', body: object, headers = fromConsentPage(gatehouse, ada)) => {
  const address = `${gatehouse.baseUrl}/v1/oauth/authorize/${path}`
  const answer = await fetch(address, { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' })
  return { status: answer.status, headers: answer.headers, body: parseOrKeep(await answer.text()) }
}

describe('authorization codes', () => {
  test('a replayed code gives no token and revokes what it gave, on both listeners', async () => {
    const { request } = await approvedCode(gatehouse, clientId, ada)
    const given = tokensOf(await redeem(request))
    expect(await opens(gatehouse, given.access_token)).toEqual(everything)
    expect(await redeem(request)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await opens(gatehouse, given.access_token)).toEqual(nothing)
    expect((await refresh(gatehouse, clientId, given.refresh_token)).body.error).toBe('invalid_grant')
  })

  test('a code injected into another flow fails at its verifier', async () => {
    const stolen = await approvedCode(gatehouse, clientId, ada)
    const injected = { ...stolen.request, code_verifier: newVerifier() }
    expect(await redeem(injected)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect((await redeem(stolen.request)).status).toBe(200)
  })

  test('a code is neither issued nor redeemed without PKCE, nor with plain', async () => {
    for (const fields of [
      { code_challenge: null },
      { code_challenge_method: null },
      { code_challenge_method: 'plain' },
    ]) {
      const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), fields))
      expect([back.searchParams.get('error'), back.searchParams.has('code')]).toEqual(['invalid_request', false])
    }
    const { request, verifier } = await approvedCode(gatehouse, clientId, ada)
    const { code_verifier: _, ...without } = request
    expect((await redeem(without)).body.error).toBe('invalid_request')
    expect((await redeem({ ...request, code_verifier: challengeOf(verifier) })).body.error).toBe('invalid_grant')
  })

  test('of many concurrent redemptions at most one succeeds, and then every token is revoked', async () => {
    const { request } = await approvedCode(gatehouse, clientId, ada)
    const answers = await Promise.all(Array.from({ length: 12 }, () => redeem(request)))
    const given = answers.filter(({ status }) => status === 200).map(tokensOf)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { access_token } of given) expect(await opens(gatehouse, access_token)).toEqual(nothing)
  })

  test('a code or refresh token is refused as an access token', async () => {
    const { code, request } = await approvedCode(gatehouse, clientId, ada)
    const { refresh_token } = tokensOf(await redeem(request))
    for (const secret of [code, refresh_token]) expect(await opens(gatehouse, secret)).toEqual(nothing)
  })
})

describe('redirects', () => {
  test('a redirect_uri that differs in any way shows an error page and never redirects', async () => {
    for (const redirect_uri of [
      'http://app.example.com/callback',
      'https://APP.example.com/callback',
      'https://app.example.com/Callback',
      'https://app.example.com:8443/callback',
      'https://app.example.com:443/callback',
      'https://app.example.com/callback/',
      'https://app.example.com/callback/..',
      'https://app.example.com/callback?next=evil',
      'https://app.example.com/callback#evil',
      'https://app.example.com@evil.example/callback',
      'https://app.example.com/%63allback',
      'https://app.example.com.evil.example/callback',
      'https://аpp.example.com/callback',
    ]) {
      const query = queryOf(authorizationUrl(gatehouse, clientId, newVerifier(), { redirect_uri }))
      for (const { status, body } of [
        await consent('preview', query),
        await consent('decision', { ...query, approve: true }),
      ]) {
        expect([redirect_uri, status, body]).toEqual([
          redirect_uri,
          200,
          { error_page: { error: 'invalid_request', message: expect.any(String) } },
        ])
      }
    }
  })

  test('an unregistered client is never redirected to', async () => {
    const query = queryOf(authorizationUrl(gatehouse, crypto.randomUUID(), newVerifier()))
    expect((await consent('decision', { ...query, approve: true })).body).toMatchObject({
      error_page: { error: 'invalid_client' },
    })
  })

  test('every redirect names the issuer, which exposes a mix-up of servers', async () => {
    const approved = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier()))
    const denied = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier()), false)
    const refused = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), { scope: 'x' }))
    for (const back of [approved, denied, refused]) expect(back.searchParams.get('iss')).toBe(gatehouse.baseUrl)
    const other = { issuer: 'https://other.example', authorization_response_iss_parameter_supported: true }
    expect(() => oauth.validateAuthResponse(other, { client_id: clientId }, approved, 'the state')).toThrow('iss')
  })

  test('a state comes back byte for byte, which exposes a forged answer', async () => {
    const state = 'a+b %2B/ü&=#?"'
    const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier(), { state }))
    expect(back.searchParams.get('state')).toBe(state)
    const server = { issuer: gatehouse.baseUrl }
    expect(() => oauth.validateAuthResponse(server, { client_id: clientId }, back, 'another')).toThrow('state')
  })
})

describe('refresh tokens', () => {
  test('a refresh that asks for more scopes than approved is refused', async () => {
    const given = await tokensFor(gatehouse, clientId, ada, { scope: 'gateway:invoke' })
    for (const scope of ['gateway:invoke tokens:read', 'tokens:read', 'tokens:write']) {
      expect((await refresh(gatehouse, clientId, given.refresh_token, { scope })).body.error).toBe('invalid_scope')
    }
    expect((await refresh(gatehouse, clientId, given.refresh_token)).body.scope).toBe('gateway:invoke')
  })

  test('of many concurrent refreshes at most one succeeds, and then the family is revoked', async () => {
    const first = await tokensFor(gatehouse, clientId, ada)
    const tried = Array.from({ length: 12 }, () => refresh(gatehouse, clientId, first.refresh_token))
    const given = (await Promise.all(tried)).filter(({ status }) => status === 200).map(tokensOf)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { access_token } of [first, ...given]) expect(await opens(gatehouse, access_token)).toEqual(nothing)
    for (const { refresh_token } of given) expect((await refresh(gatehouse, clientId, refresh_token)).status).toBe(400)
  })

  test('a stolen refresh token used after its owner revokes the family of both', async () => {
    const first = await tokensFor(gatehouse, clientId, ada)
    const owner = tokensOf(await refresh(gatehouse, clientId, first.refresh_token))
    expect((await refresh(gatehouse, clientId, first.refresh_token)).body.error).toBe('invalid_grant')
    expect(await opens(gatehouse, owner.access_token)).toEqual(nothing)
  })
})

test('another client can neither use nor revoke a client’s tokens', async () => {
  const other = await register(gatehouse, { client_name: 'Another' })
  const { request } = await approvedCode(gatehouse, clientId, ada)
  expect((await redeem({ ...request, client_id: other })).body.error).toBe('invalid_grant')
  const given = tokensOf(await redeem(request))
  expect((await refresh(gatehouse, other, given.refresh_token)).body.error).toBe('invalid_grant')
  for (const token of [given.access_token, given.refresh_token]) {
    const answer = await post(gatehouse, '/v1/oauth/revoke', { client_id: other, token })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_grant'])
  }
  expect(await opens(gatehouse, given.access_token)).toEqual(everything)
})

describe('the decision', () => {
  const question = () => ({
    ...queryOf(authorizationUrl(gatehouse, clientId, newVerifier())),
    approve: true,
    scopes: ['gateway:invoke', 'tokens:read'],
    user_id: ada.id,
  })

  test('is refused for a forged request', async () => {
    const eve = await person(gatehouse, 'eve')
    const good = fromConsentPage(gatehouse, ada)
    const { 'x-csrf-token': _, ...withoutToken } = good
    for (const headers of [
      withoutToken,
      { ...good, 'x-csrf-token': '' },
      { ...good, 'x-csrf-token': eve.csrf },
      { ...good, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { ...good, origin: 'null', 'sec-fetch-site': 'same-site' },
    ]) {
      expect(await consent('decision', question(), headers)).toMatchObject({
        status: 403,
        body: { error: { code: 'csrf_refused' } },
      })
    }
    expect((await consent('decision', question(), good)).status).toBe(200)
  })

  test('is accepted from a signed-in person in a browser only', async () => {
    expect((await consent('decision', question(), { 'content-type': 'application/json' })).status).toBe(401)
    const { access_token } = await tokensFor(gatehouse, clientId, ada)
    for (const token of [gatehouse.adminToken, access_token]) {
      const answer = await api(gatehouse, '/v1/oauth/authorize/decision', { token, body: question() })
      expect(answer.status).toBe(403)
    }
  })

  test('cannot be framed', async () => {
    const page = await fetch(authorizationUrl(gatehouse, clientId, newVerifier()))
    for (const { headers } of [page, await consent('preview', question()), await consent('decision', question())]) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    }
  })

  test('grants only what the page showed', async () => {
    const { scopes: _, ...unseen } = question()
    expect(await consent('decision', unseen)).toMatchObject({ status: 422, body: { error: { param: 'scopes' } } })
    for (const scopes of [[], ['gateway:invoke'], ['gateway:invoke', 'events:read']]) {
      const { status, body } = await consent('decision', { ...question(), scopes })
      expect([status, body]).toMatchObject([409, { error: { code: 'consent_outdated' } }])
    }
  })

  test('gives each of two people who approve one request a code of their own', async () => {
    const [bea, cem] = await Promise.all([person(gatehouse, 'bea'), person(gatehouse, 'cem')])
    const verifier = newVerifier()
    const asked = authorizationUrl(gatehouse, clientId, verifier)
    const codes = (await Promise.all([bea, cem].map((who) => decide(gatehouse, who, asked)))).map(
      ({ searchParams }) => searchParams.get('code') ?? '',
    )
    const given = (await Promise.all(codes.map((code) => redeem(codeRequest(clientId, code, verifier))))).map(tokensOf)
    await api(gatehouse, `/v1/users/${bea.id}`, { method: 'PATCH', body: { status: 'disabled' } })
    const opened = await Promise.all(given.map(({ access_token }) => opens(gatehouse, access_token)))
    expect(opened).toEqual([nothing, everything])
  })

  test('is refused on the retired route', async () => {
    const { search } = authorizationUrl(gatehouse, clientId, newVerifier())
    const answer = await api(gatehouse, `/v1/oauth/authorize${search}`)
    expect(answer.status).toBe(410)
  })
})

test('expired codes, tokens and requests give nothing on both listeners', async () => {
  const given = await tokensFor(gatehouse, clientId, ada)
  const late = await approvedCode(gatehouse, clientId, ada)
  const age = (file: string, table: string, column: string) => {
    using database = new Database(join(gatehouse.dataDirectory, file))
    database.run('pragma busy_timeout = 5000')
    database.run(
      `update ${table} set ${column} = ${Date.now() - 60_000} where ${column} = (select max(${column}) from ${table})`,
    )
  }
  // The limits are at least ten seconds: the youngest of each is made older, instead of waiting. By a minute, because
  // the clocks of the two listeners agree to a few milliseconds only.
  age('ledger.db', 'oauth_grants', 'code_expires_at')
  age('ledger.db', 'oauth_refresh_tokens', 'expires_at')
  age('state.db', 'oauth_tokens', 'expires_at')
  expect(await redeem(late.request)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect((await refresh(gatehouse, clientId, given.refresh_token)).body.error).toBe('invalid_grant')
  expect(await opens(gatehouse, given.access_token)).toEqual(nothing)
})

describe('access tokens', () => {
  test('are ignored in an address or a body', async () => {
    const { access_token } = await tokensFor(gatehouse, clientId, ada)
    const inForm = { method: 'POST', body: new URLSearchParams({ access_token }) }
    for (const answer of await Promise.all([
      fetch(`${gatehouse.baseUrl}/v1/tokens?access_token=${access_token}`),
      fetch(`${gatehouse.baseUrl}/v1/tokens`, inForm),
      fetch(`${gatehouse.gatewayUrl}/v1/models?access_token=${access_token}`),
      fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, inForm),
    ])) {
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        expect.not.stringContaining('error='),
      ])
    }
  })

  test('of one resource are refused by another', async () => {
    const of = (resource: string) => tokensFor(gatehouse, clientId, ada, { resource })
    const [here, gateway, mcp] = await Promise.all([
      of(gatehouse.baseUrl),
      of(gatehouse.gatewayUrl),
      of(`${gatehouse.gatewayUrl}/mcp`),
    ])
    expect(await opens(gatehouse, here.access_token)).toEqual({ api: true, gateway: false })
    expect(await opens(gatehouse, gateway.access_token)).toEqual({ api: false, gateway: true })
    expect(await opens(gatehouse, mcp.access_token)).toEqual(nothing)
  })

  test('are refused from the moment a revocation is answered', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { access_token: token } = await tokensFor(gatehouse, clientId, ada)
      expect(await opens(gatehouse, token)).toEqual(everything)
      const { body } = await post(gatehouse, '/v1/oauth/revoke', { client_id: clientId, token })
      expect(body.propagation).toMatchObject({ connected: 1, acknowledged: 1, unreachable: [] })
      expect(await opens(gatehouse, token)).toEqual(nothing)
    }
  })

  test('of a person are refused from the moment the person is disabled', async () => {
    const leaver = await person(gatehouse, 'leaver')
    const { access_token } = await tokensFor(gatehouse, clientId, leaver)
    expect(await opens(gatehouse, access_token)).toEqual(everything)
    await api(gatehouse, `/v1/users/${leaver.id}`, { method: 'PATCH', body: { status: 'disabled' } })
    expect(await opens(gatehouse, access_token)).toEqual(nothing)
  })

  test('of a person whose role lost the permission are refused by the gateway without a challenge', async () => {
    const mover = await person(gatehouse, 'mover')
    const { access_token } = await tokensFor(gatehouse, clientId, mover)
    await api(gatehouse, `/v1/users/${mover.id}`, { method: 'PATCH', body: { role: 'auditor' } })
    const refused = await eventually(async () => {
      const headers = { authorization: `Bearer ${access_token}` }
      const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers })
      // While the denial is ahead of the state, the token counts as replaced.
      if (answer.status === 401) throw new Error('The state has not followed yet')
      return answer
    })
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([403, null])
  })
})

test('a kill -9 between the steps of a redemption leaves no undelivered token active', async () => {
  const killed = await startGatehouse()
  try {
    const who = await person(killed, 'ada')
    const client = await register(killed)
    const given: Tokens[] = []
    let interrupted = 0
    const codes = () =>
      Promise.all(Array.from({ length: 12 }, async () => (await approvedCode(killed, client, who)).request))
    // The first delay is half of what an undisturbed batch takes; then each round corrects the next one's.
    const undisturbed = await codes()
    const start = performance.now()
    const first = await Promise.all(undisturbed.map((request) => post(killed, '/v1/oauth/token', request)))
    given.push(...first.map(tokensOf))
    let killAfterMs = (performance.now() - start) / 2
    for (let round = 0; round < 3 || (interrupted === 0 && round < 12); round += 1) {
      const requests = await codes()
      // Finding the process takes longer than a redemption, so it is found before the requests are sent.
      const pid = killed.controlPlanePid()
      const sent = requests.map((request) => post(killed, '/v1/oauth/token', request).catch(() => null))
      await Bun.sleep(killAfterMs)
      signal(pid, 'SIGKILL')
      const answers = await Promise.all(sent)
      const unanswered = answers.filter((answer) => answer === null).length
      interrupted += unanswered
      if (unanswered === 0) killAfterMs /= 2
      if (unanswered === answers.length) killAfterMs *= 1.5
      await eventually(async () => expect((await fetch(`${killed.baseUrl}/readyz`)).status).toBe(200))
      for (const [index, answer] of answers.entries()) {
        // A client without an answer tries again: the code is still good, or it is gone with all the tokens that it gave.
        const last = answer ?? (await post(killed, '/v1/oauth/token', requests[index] ?? {}))
        if (last.status === 200) given.push(tokensOf(last))
        else expect(last).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
      }
    }
    expect(interrupted).toBeGreaterThan(0)
    await eventually(() => expect(liveTokens(killed)).toBe(given.length), { withinMs: 30_000 })
    for (const { access_token } of given) expect((await opens(killed, access_token)).api).toBe(true)
  } finally {
    await killed.stop()
  }
})

/** How many access tokens are in force in the state's file. */
function liveTokens({ dataDirectory }: Gatehouse): number {
  using state = new Database(join(dataDirectory, 'state.db'), { readonly: true })
  const sql = 'select count(*) as live from oauth_tokens where revoked_at is null and deleted = 0'
  return state.query<{ live: number }, []>(sql).get()?.live ?? -1
}

test('no file and no log holds a secret of the flow', async () => {
  const { code, verifier, request } = await approvedCode(gatehouse, clientId, ada)
  const given = tokensOf(await redeem(request))
  await redeem(request)
  const secrets = [code, verifier, given.access_token, given.refresh_token]
  const files = [...new Bun.Glob('**/*').scanSync({ cwd: gatehouse.dataDirectory, absolute: true })]
  const texts = await Promise.all(
    files.map(async (file) => Buffer.from(await Bun.file(file).bytes()).toString('latin1')),
  )
  for (const text of [...texts, gatehouse.stdout(), gatehouse.stderr()]) {
    for (const secret of secrets) expect(text.includes(secret)).toBe(false)
  }
})

test('an approval redirects to the registered address', async () => {
  const back = await decide(gatehouse, ada, authorizationUrl(gatehouse, clientId, newVerifier()))
  expect(back.origin + back.pathname).toBe(redirectUri)
})
