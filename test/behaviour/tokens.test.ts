import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import {
  createdToken,
  errorAnswer,
  revokedToken,
  type TokenRecord,
  tokenPage,
  tokenRecord,
} from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, installation, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, providerKey, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, eventsOfRequest, eventsThroughApi } from '../support/recorded.ts'
import { runtimeTokenOf } from '../support/runtime-token.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

async function listAll(query: string, limit: number): Promise<TokenRecord[]> {
  const tokens: TokenRecord[] = []
  let cursor: string | null = null
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const answer = await api(gatehouse, `/v1/tokens?limit=${limit}${query}${after}`)
    const page = expectAnswer(answer, 200, tokenPage)
    expect(page.tokens.length).toBeLessThanOrEqual(limit)
    tokens.push(...page.tokens)
    cursor = page.next_cursor
  } while (cursor !== null)
  return tokens
}

test('a created token shows its secret once and works at once', async () => {
  const answer = await api(gatehouse, '/v1/tokens', { body: { name: 'first', purpose: 'general' } })
  const token = expectAnswer(answer, 201, createdToken)
  expect(token).toMatchObject({ name: 'first', purpose: 'general', principal_type: 'api_token', status: 'active' })
  expect(token.token_prefix).toBe(token.token_value.slice(0, 12))
  expect(token.roles).toEqual(['member'])
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(200)
  const read = expectAnswer(await api(gatehouse, `/v1/tokens/${token.id}`), 200, tokenRecord)
  expect(read).not.toHaveProperty('token_value')
  expect(JSON.stringify(read)).not.toContain(token.token_value)
})

test('the resource name of a token contains its id', async () => {
  const token = await createToken(gatehouse)
  expect(token.resource_vrn).toMatch(new RegExp(`^vrn:gatehouse:[0-9a-f-]{36}:token/${token.resource_id}$`))
})

test('the cursor of a list reaches every token once, and the last page has none', async () => {
  const made = await Promise.all(Array.from({ length: 7 }, () => createToken(gatehouse, { name: 'one of seven' })))
  const seen = (await listAll('&purpose=general', 3)).map(({ id }) => id)
  expect(new Set(seen).size).toBe(seen.length)
  expect(made.filter(({ id }) => !seen.includes(id))).toEqual([])
})

test('a cursor with other filters is refused', async () => {
  const page = expectAnswer(await api(gatehouse, '/v1/tokens?limit=1'), 200, tokenPage)
  expect(page.next_cursor).not.toBeNull()
  const cursor = encodeURIComponent(page.next_cursor ?? '')
  const other = await api(gatehouse, `/v1/tokens?limit=1&status=revoked&cursor=${cursor}`)
  expect(expectAnswer(other, 422, errorAnswer).error.code).toBe('invalid_cursor')
  const made = await api(gatehouse, '/v1/tokens?cursor=bm90LWEtY3Vyc29y')
  expect(expectAnswer(made, 422, errorAnswer).error.code).toBe('invalid_cursor')
})

test('a page size outside 1 to 100 is refused', async () => {
  for (const limit of ['0', '101', 'many', '-1']) {
    const { error } = expectAnswer(await api(gatehouse, `/v1/tokens?limit=${limit}`), 422, errorAnswer)
    expect([limit, error.param]).toEqual([limit, 'limit'])
  }
})

test('status and purpose filter the list', async () => {
  const token = await createToken(gatehouse, { name: 'to be revoked' })
  expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
  const revoked = await listAll('&status=revoked', 100)
  expect(revoked.map(({ id }) => id)).toContain(token.id)
  expect(revoked.every(({ status }) => status === 'revoked')).toBe(true)
  const active = await listAll('&status=active', 100)
  expect(active.map(({ id }) => id)).not.toContain(token.id)
  const runtime = await listAll('&purpose=gateway_runtime', 100)
  expect(runtime.map(({ purpose }) => purpose)).toEqual(['gateway_runtime'])
})

test('an unknown token is 404 for any form of id', async () => {
  for (const id of ['018f0000-0000-7000-8000-000000000000', 'no-id-at-all', '%00']) {
    const { status } = await api(gatehouse, `/v1/tokens/${id}`)
    expect([id, [404, 422].includes(status)]).toEqual([id, true])
  }
})

interface Refusal {
  why: string
  body: object
  status: number
  code: string
  param: string
}

test('a token that breaks a rule is refused with the name of the field', async () => {
  const { teamId } = await installation(gatehouse)
  const noAttribution = '018f0000-0000-7000-8000-000000000000'
  const invalid = { status: 422, code: 'invalid_parameter' }
  const refusals: Refusal[] = [
    { why: 'no name', body: { purpose: 'general' }, ...invalid, param: 'name' },
    { why: 'a purpose nobody knows', body: { name: 'x', purpose: 'root' }, ...invalid, param: 'purpose' },
    {
      why: 'a field nobody knows',
      body: { name: 'x', purpose: 'general', colour: 'red' },
      status: 422,
      code: 'unknown_parameter',
      param: 'colour',
    },
    {
      why: 'a lifetime below a minute',
      body: { name: 'x', purpose: 'general', expires_in_seconds: 59 },
      ...invalid,
      param: 'expires_in_seconds',
    },
    {
      why: 'a runtime token without a gateway',
      body: { name: 'x', purpose: 'gateway_runtime', bindings: { team_id: teamId } },
      ...invalid,
      param: 'bindings.gateway_id',
    },
    {
      why: 'an integration token without a team',
      body: { name: 'x', purpose: 'integration' },
      ...invalid,
      param: 'bindings.team_id',
    },
    {
      why: 'a team that does not exist',
      body: { name: 'x', purpose: 'general', bindings: { team_id: noAttribution } },
      ...invalid,
      param: 'bindings.team_id',
    },
    {
      why: 'a disposable token without an expiry',
      body: { name: 'x', purpose: 'general', key_class: 'disposable', max_requests: 3 },
      ...invalid,
      param: 'expires_in_seconds',
    },
  ]
  const got = await Promise.all(
    refusals.map(async ({ why, body }) => {
      const { status, body: answer } = await api(gatehouse, '/v1/tokens', { body })
      const error = errorAnswer.safeParse(answer).data?.error
      return { why, status, code: error?.code, param: error?.param }
    }),
  )
  expect(got).toEqual(refusals.map(({ why, status, code, param }) => ({ why, status, code, param })))
})

test('a member creates, lists and revokes no token, and the refusal names the permission', async () => {
  const member = await createToken(gatehouse)
  const token = member.token_value
  const made = await api(gatehouse, '/v1/tokens', { token, body: { name: 'x', purpose: 'general' } })
  const refused = expectAnswer(made, 403, errorAnswer)
  expect(refused.error).toMatchObject({ type: 'access_denied', code: 'permission_denied' })
  expect(refused.error.message).toContain('tokens:write')
  const revoked = await api(gatehouse, `/v1/tokens/${member.id}`, { token, method: 'DELETE' })
  expect(expectAnswer(revoked, 403, errorAnswer).error.code).toBe('permission_denied')
})

test('the control plane refuses requests without a token or with an invalid one', async () => {
  const missing = await api(gatehouse, '/v1/tokens', { token: null })
  expect(expectAnswer(missing, 401, errorAnswer).error).toMatchObject({
    type: 'authentication_error',
    code: 'missing_api_key',
  })
  const broken = await api(gatehouse, '/v1/tokens', { token: `${gatehouse.adminToken.slice(0, -1)}_` })
  expect(expectAnswer(broken, 401, errorAnswer).error.code).toBe('invalid_api_token')
})

test('a repeated create with the same Idempotency-Key creates one token and never shows its secret again', async () => {
  const request = {
    body: { name: 'only one', purpose: 'general' },
    headers: { 'idempotency-key': crypto.randomUUID() },
  }
  const token = expectAnswer(await api(gatehouse, '/v1/tokens', request), 201, createdToken)
  const again = await api(gatehouse, '/v1/tokens', request)
  expect(expectAnswer(again, 409, errorAnswer).error.code).toBe('idempotency_key_used')
  expect(JSON.stringify(again.body)).toContain(token.id)
  expect(JSON.stringify(again.body)).not.toContain(token.token_value)
  const other = await api(gatehouse, '/v1/tokens', { ...request, body: { name: 'another', purpose: 'general' } })
  expect(expectAnswer(other, 422, errorAnswer).error.code).toBe('idempotency_key_reused')
})

test('creation and revocation each leave an event', async () => {
  const token = await createToken(gatehouse)
  await revoke(gatehouse, token.id)
  const types = eventsInLedger(gatehouse)
    .filter(({ event_attribution, details }) => JSON.stringify([event_attribution, details]).includes(token.id))
    .map(({ event_type, verdict, reason_code }) => [event_type, verdict, reason_code])
  expect(types).toEqual([
    ['token.created', 'allow', 'ok'],
    ['token.revoked', 'allow', 'ok'],
  ])
})

test('last_used_at follows the use of a token', async () => {
  const token = await createToken(gatehouse)
  expect(token.last_used_at).toBeNull()
  await (await chat(gatehouse, { token: token.token_value })).text()
  await until('the record says when the token was used', async () => {
    const record = expectAnswer(await api(gatehouse, `/v1/tokens/${token.id}`), 200, tokenRecord)
    return record.last_used_at !== null
  })
})

test('the command line creates, lists, reads and deletes tokens', async () => {
  const created = await operate(
    gatehouse,
    'token',
    'create',
    '--name',
    'from the shell',
    '--purpose',
    'general',
    '--json',
  )
  expect([created.code, created.stderr]).toEqual([0, ''])
  const token = createdToken.parse(JSON.parse(created.stdout))
  const listed = await operate(gatehouse, 'token', 'list', '--purpose', 'general', '--json')
  expect(tokenPage.parse(JSON.parse(listed.stdout)).tokens.map(({ id }) => id)).toContain(token.id)
  const read = await operate(gatehouse, 'token', 'get', token.id, '--json')
  expect(tokenRecord.parse(JSON.parse(read.stdout)).name).toBe('from the shell')
  const unsure = await operate(gatehouse, 'token', 'delete', token.id)
  expect(unsure.code).not.toBe(0)
  expect(unsure.stderr).toContain('--yes')
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(200)
  const deleted = await operate(gatehouse, 'token', 'delete', token.id, '--yes')
  expect([deleted.code, deleted.stderr]).toEqual([0, ''])
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(401)
})

test('the command line creates a runtime token, with its purpose in kebab-case', async () => {
  const { gatewayId, teamId } = await installation(gatehouse)
  const bindings = ['--gateway-id', gatewayId, '--team-id', teamId, '--expires-in', '1d']
  const make = (purpose: string) =>
    operate(gatehouse, 'token', 'create', '--name', 'edge', '--purpose', purpose, ...bindings, '--json')
  const created = await make('gateway-runtime')
  expect([created.code, created.stderr]).toEqual([0, ''])
  const token = createdToken.parse(JSON.parse(created.stdout))
  expect(token).toMatchObject({ purpose: 'gateway_runtime', principal_type: 'api_token' })
  expect(Math.abs(Date.parse(token.expires_at ?? '') - Date.now() - 86_400_000)).toBeLessThan(60_000)
  expect((await make('gateway_runtime')).code).toBe(2)
})

test('a secret appears only in the answer that showed it', async () => {
  const token = await createToken(gatehouse, { name: 'searched for' })
  const secret = token.token_value
  const made = await api(gatehouse, '/v1/tokens', { token: secret, body: { name: secret, purpose: secret } })
  expect(JSON.stringify(made.body)).not.toContain(secret)
  const requestId = 'searched-for'
  await (await chat(gatehouse, { token: secret, requestId })).text()
  await (await chat(gatehouse, { token: `${secret.slice(0, -1)}!` })).text()
  await eventsOfRequest(gatehouse, requestId)
  await revoke(gatehouse, token.id)
  const refused = await (await chat(gatehouse, { token: secret })).text()

  const runtimeToken = runtimeTokenOf(gatehouse)
  expect(runtimeToken).toMatch(/^gth_/)
  const secrets = { secret, administrator: gatehouse.adminToken, runtimeToken, providerKey }
  const places: Record<string, string> = {
    refusal: refused,
    log:
      gatehouse.stderr() +
      gatehouse
        .stdout()
        .split('\n')
        .filter((line) => !line.includes('"ready":true'))
        .join('\n'),
    events: JSON.stringify(await eventsThroughApi(gatehouse)),
    ledger: JSON.stringify(eventsInLedger(gatehouse)),
    list: JSON.stringify(await listAll('', 100)),
    ...(await metricsOfBoth()),
    ...filesOf(gatehouse.dataDirectory),
  }
  const found = Object.entries(places).flatMap(([place, text]) =>
    Object.entries(secrets)
      .filter(([, value]) => text.includes(value))
      .map(([name]) => `${name} in ${place}`),
  )
  expect(found).toEqual([])
  expect(Object.keys(places).length).toBeGreaterThan(8)
})

async function metricsOfBoth(): Promise<Record<string, string>> {
  const read = async (url: string) => [`${url}/metrics`, await (await fetch(`${url}/metrics`)).text()]
  return Object.fromEntries(await Promise.all([gatehouse.baseUrl, gatehouse.gatewayUrl].map(read)))
}

/** Every file below the directory, byte for byte. */
function filesOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true })
    .map((name) => join(directory, String(name)))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  return Object.fromEntries(files.map((path) => [path, readFileSync(path, 'latin1')]))
}
