/**
 * The catalog by its API, on real files: every field of its records, what each refuses, and that no credential ever
 * comes out. Long because the three kinds of records are held to the same promises side by side.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { recordedEvents, recordedTexts } from '../events/testing/recorded.ts'
import { CatalogView } from '../fleet/state/catalog-view.ts'
import { unseal } from '../lib/seal.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../members/testing/temporary-control-plane.ts'
import { openDataKey } from './credentials.ts'
import { testServiceKey } from './google/testing/service-key.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

const providers = '/v1/catalog/providers'
const models = '/v1/catalog/models'
const gateways = '/v1/gateways'
const apiKey = 'sk-very-secret-1'
const secretHeader = 'header-very-secret-2'

const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  plane.call(method, path, { token: plane.adminToken, headers, ...(body === undefined ? {} : { body }) })

let made = 0
const freshName = () => `provider-${++made}`
async function makeProvider(fields: object = {}) {
  const answer = await call('POST', providers, { name: freshName(), kind: 'openai', ...fields })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json
}
async function makeModel(fields: object = {}) {
  const provider_id = (await makeProvider()).id
  const answer = await call('POST', models, { id: `model-${++made}`, provider_id, ...fields })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json
}
const refused = async (...sent: Parameters<typeof call>) => {
  const { status, json } = await call(...sent)
  return [status, json.error?.code, json.error?.param]
}
const eventsOf = async (id: string) =>
  (await recordedEvents(plane.store.ledger))
    .filter((event) => JSON.stringify(event).includes(id))
    .map(({ event_type }) => ({ event_type }))

test('makes a provider of a preset from its key alone', async () => {
  const { status, json } = await call('POST', providers, { preset: 'groq', api_key: apiKey })
  expect([status, json]).toMatchObject([
    201,
    { name: 'groq', kind: 'groq', base_url: null, has_api_key: true, allow_unlisted_models: true },
  ])
  const named = { preset: 'groq', name: 'groq-eu', allow_unlisted_models: false }
  expect((await call('POST', providers, named)).json).toMatchObject({ name: 'groq-eu', allow_unlisted_models: false })
  const azure = { preset: 'azure', base_url: 'https://name.openai.azure.com' }
  expect((await call('POST', providers, azure)).json).toMatchObject({ name: 'azure', kind: 'azure-openai' })
})

test('seals the key of a service account for Vertex AI, and refuses a key that is none', async () => {
  const key = testServiceKey('https://oauth2.googleapis.com/token')
  const { status, json, text } = await call('POST', providers, { preset: 'vertex', api_key: key })
  expect([status, json]).toMatchObject([201, { kind: 'vertex', has_api_key: true }])
  const rows = await plane.store.state.read<{ sealed_credentials: string }>(
    `select sealed_credentials from providers where id = '${json.id}'`,
  )
  const dataKey = await openDataKey(plane.deps, json.id)
  const opened = unseal(dataKey ?? new Uint8Array(), rows[0]?.sealed_credentials ?? '', json.id)
  expect(JSON.parse(opened)).toEqual({ api_key: key, headers: {} })
  for (const shown of [text, JSON.stringify(rows), (await recordedTexts(plane.store.ledger)).join()]) {
    expect(shown).not.toContain('PRIVATE KEY')
  }
  const made = { name: 'vertex-2', preset: 'vertex' }
  for (const wrong of [
    { ...made, api_key: 'AIza-key' },
    { ...made, api_key: '{"type":"service_account"}' },
    { ...made, base_url: 'https://elsewhere.example' },
    { name: freshName(), kind: 'openai', api_key: '{ "a": 1 }' },
  ]) {
    expect(await refused('POST', providers, wrong)).toEqual([422, 'invalid_parameter', 'api_key'])
  }
  const unfit = { ...made, base_url: 'https://europe-west1-aiplatform.googleapis.com/v2' }
  expect(await refused('POST', providers, unfit)).toEqual([422, 'invalid_parameter', 'base_url'])
  // Without a key the host's own account is used, whose tokens go to Google only.
  expect(
    await refused('PATCH', `${providers}/${json.id}`, { base_url: 'https://elsewhere.example', api_key: null }),
  ).toEqual([422, 'invalid_parameter', 'api_key'])
})

test('tests a provider with its stored key, shows no key, and records who did it', async () => {
  const seen: string[] = []
  const upstream = Bun.serve({
    port: 0,
    fetch(request) {
      seen.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get('authorization')}`)
      return Response.json({ error: { message: `No such key: ${apiKey}` } }, { status: 401 })
    },
  })
  const { id } = await makeProvider({ base_url: upstream.url.origin, api_key: apiKey })
  await call('POST', models, { id: 'tested', provider_id: id, upstream_model: 'up' })
  const { status, json, text } = await call('POST', `${providers}/${id}/test`, {})
  await upstream.stop(true)
  expect([status, json]).toMatchObject([200, { ok: false, model: 'up' }])
  expect(json.steps[1].message).toBe('The provider refused with status 401 (check the API key): No such key: ***')
  expect(text).not.toContain(apiKey)
  expect(seen).toEqual([
    `GET /v1/models Bearer ${apiKey}`,
    `POST /v1/chat/completions Bearer ${apiKey}`,
    `POST /v1/chat/completions Bearer ${apiKey}`,
  ])
  expect(await eventsOf(id)).toContainEqual({ event_type: 'catalog.tested' })
  expect(await refused('POST', `${providers}/${id}/test`, { model: '../x' })).toEqual([
    422,
    'invalid_parameter',
    'model',
  ])
  expect((await refused('POST', `${providers}/01990000-0000-7000-8000-000000000001/test`, {}))[0]).toBe(404)
})

test('refuses an unknown preset with the nearest one, and a preset beside a kind', async () => {
  const unknown = await call('POST', providers, { preset: 'grok', api_key: apiKey })
  expect([unknown.status, unknown.json.error.param]).toEqual([422, 'preset'])
  expect(unknown.json.error.message).toContain('Did you mean groq?')
  expect(await refused('POST', providers, { preset: 'xai', kind: 'openai' })).toEqual([
    422,
    'invalid_parameter',
    'kind',
  ])
  expect(await refused('POST', providers, { name: 'n' })).toEqual([422, 'invalid_parameter', 'preset'])
  expect(await refused('POST', providers, { kind: 'openai' })).toEqual([422, 'invalid_parameter', 'name'])
  expect(await refused('POST', providers, { preset: 'azure', name: 'n' })).toEqual([
    422,
    'invalid_parameter',
    'base_url',
  ])
})

test('creates, shows, changes and deletes a provider, each change with its event', async () => {
  const body = {
    name: 'everything',
    kind: 'openai',
    base_url: 'https://example.com/v1/',
    api_key: apiKey,
    headers: { 'X-Org': secretHeader },
    allow_unlisted_models: true,
    default_price: { input_per_million: 1, output_per_million: 2 },
    timeouts: { first_byte_seconds: 5 },
  }
  const created = await call('POST', providers, body)
  expect(created.status).toBe(201)
  const { id } = created.json
  expect(created.json).toMatchObject({
    name: 'everything',
    base_url: 'https://example.com/v1',
    has_api_key: true,
    header_names: ['X-Org'],
    allow_unlisted_models: true,
    default_price: { input_per_million: 1, output_per_million: 2 },
    timeouts: { first_byte_seconds: 5 },
  })
  expect(created.headers.get('etag')).toBe(`"${created.json.version}"`)
  const changed = await call('PATCH', `${providers}/${id}`, { timeouts: null, allow_unlisted_models: false })
  expect(changed.json).toMatchObject({ timeouts: null, allow_unlisted_models: false, has_api_key: true })
  expect((await call('GET', `${providers}/${id}`)).json).toEqual(changed.json)
  expect((await call('DELETE', `${providers}/${id}`)).status).toBe(200)
  expect((await call('GET', `${providers}/${id}`)).status).toBe(404)
  expect((await eventsOf(id)).map(({ event_type }) => event_type)).toEqual([
    'catalog.created',
    'catalog.updated',
    'catalog.deleted',
  ])
})

test('no credential is in an answer, an event or a database as text', async () => {
  const secrets = { api_key: apiKey, headers: { 'x-secret': secretHeader } }
  const provider = await makeProvider(secrets)
  const path = `${providers}/${provider.id}`
  const answers = [
    await call('GET', path),
    await call('GET', providers),
    await call('PATCH', path, secrets),
    await call('PATCH', path, { api_key: `${apiKey} ${secretHeader}` }),
  ]
  const { state, ledger } = plane.store
  const tables = await Promise.all([
    ...['providers', 'change_log'].map((table) => state.read(`select * from ${table}`)),
    ...['segment_facets', 'secrets', 'pending_changes'].map((table) => ledger.read(`select * from ${table}`)),
    recordedTexts(ledger),
  ])
  const everything = JSON.stringify([answers.map(({ text }) => text), tables])
  for (const secret of [apiKey, secretHeader]) expect(everything).not.toContain(secret)
})

test('gateways use a new API key under the data key they have', async () => {
  const provider = await makeProvider({ api_key: 'sk-first', headers: { 'x-a': 'b' } })
  const opened = async () => {
    const [row] = await plane.store.state.read<{ sealed_credentials: string }>(
      'select sealed_credentials from providers where id = ?',
      [provider.id],
    )
    const key = await openDataKey({ ledger: plane.store.ledger, masterKey: plane.options.masterKey }, provider.id)
    if (key === null || row === undefined) throw new Error('nothing to open')
    return { key: Buffer.from(key).toString('hex'), held: JSON.parse(unseal(key, row.sealed_credentials, provider.id)) }
  }
  const before = await opened()
  await call('PATCH', `${providers}/${provider.id}`, { api_key: 'sk-second' })
  const after = await opened()
  expect([before.held, after.held]).toEqual([
    { api_key: 'sk-first', headers: { 'x-a': 'b' } },
    { api_key: 'sk-second', headers: { 'x-a': 'b' } },
  ])
  expect(after.key).toBe(before.key)
  const without = await call('PATCH', `${providers}/${provider.id}`, { api_key: null, headers: null })
  expect(without.json).toMatchObject({ has_api_key: false, header_names: [] })
})

test('does not send credentials of one address to another unless they are given again', async () => {
  const provider = await makeProvider({ base_url: 'https://one.example', api_key: apiKey, headers: { 'x-a': 'b' } })
  const path = `${providers}/${provider.id}`
  const elsewhere = { base_url: 'https://two.example' }
  expect(await refused('PATCH', path, elsewhere)).toEqual([422, 'invalid_parameter', 'api_key'])
  expect(await refused('PATCH', path, { ...elsewhere, api_key: 'sk-new' })).toEqual([
    422,
    'invalid_parameter',
    'headers',
  ])
  expect((await call('PATCH', path, { ...elsewhere, api_key: 'sk-new', headers: null })).json).toMatchObject({
    base_url: 'https://two.example',
    header_names: [],
  })
})

test('a base URL is https, or http on this host, without user, query or fragment', async () => {
  const wrongUrls = [
    'nonsense',
    'ftp://host',
    'http://example.com',
    'http://127.0.0.1.example.com',
    'https://user@host',
    'https://host/?a=b',
    'https://host/?',
    'https://host/#a',
  ]
  for (const base_url of wrongUrls) {
    const answer = await call('POST', providers, { name: freshName(), kind: 'openai', base_url })
    expect([base_url, answer.status, answer.json.error?.param]).toEqual([base_url, 422, 'base_url'])
    expect(answer.text).not.toContain('example.com')
  }
  for (const base_url of ['http://127.0.0.1:8000', 'http://localhost/v1', 'http://[::1]:1', 'https://host/path']) {
    expect((await makeProvider({ base_url })).base_url).toBe(base_url)
  }
  const azure = { name: freshName(), kind: 'azure-openai' }
  expect(await refused('POST', providers, azure)).toEqual([422, 'invalid_parameter', 'base_url'])
})

test('refuses invalid fields of a provider', async () => {
  const wrong: [object, string][] = [
    [{ kind: 'telepathy' }, 'kind'],
    [{ name: 'has space' }, 'name'],
    [{ api_key: 'two\nlines' }, 'api_key'],
    [{ api_key: '' }, 'api_key'],
    [{ headers: { host: 'elsewhere' } }, 'headers'],
    [{ headers: { 'x-a': 'b\r\nx-c: d' } }, 'headers'],
    [{ headers: { 'x-a': 'b', 'X-A': 'c' } }, 'headers'],
    [{ timeouts: { idle_seconds: 0 } }, 'timeouts.idle_seconds'],
    [{ timeouts: { never: 1 } }, 'timeouts.never'],
    [{ default_price: { input_per_million: -1, output_per_million: 1 } }, 'default_price.input_per_million'],
    [{ budget: 5 }, 'budget'],
  ]
  for (const [fields, param] of wrong) {
    const [status, , named] = await refused('POST', providers, { name: freshName(), kind: 'openai', ...fields })
    expect([param, status, named]).toEqual([param, 422, param])
  }
  const { name } = await makeProvider()
  expect(await refused('POST', providers, { name, kind: 'openai' })).toEqual([409, 'conflict', 'name'])
})

test('refuses a change with a stale If-Match', async () => {
  const { id, version } = await makeProvider()
  const headers = { 'if-match': `"${version}"` }
  expect((await call('PATCH', `${providers}/${id}`, { name: freshName() }, headers)).status).toBe(200)
  expect(await refused('PATCH', `${providers}/${id}`, { name: freshName() }, headers)).toEqual([
    412,
    'version_mismatch',
    null,
  ])
  expect((await call('DELETE', `${providers}/${id}`, undefined, headers)).status).toBe(412)
})

test('applies exactly those of many simultaneous changes that it answers with 200', async () => {
  const { id, version } = await makeProvider()
  const answers = await Promise.all(
    Array.from({ length: 5 }, () =>
      call('PATCH', `${providers}/${id}`, { name: freshName() }, { 'if-match': `"${version}"` }),
    ),
  )
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200).length).toBe(1)
  expect(statuses.every((status) => [200, 409, 412].includes(status))).toBe(true)
})

test('a provider that models name stays, and one that tokens are bound to keeps its name', async () => {
  const model = await makeModel()
  expect(await refused('DELETE', `${providers}/${model.provider_id}`)).toEqual([409, 'conflict', null])
  await call('DELETE', `${models}/${model.id}`)
  const { name } = (await call('GET', `${providers}/${model.provider_id}`)).json
  const token = await call('POST', '/v1/tokens', { name: 'x', purpose: 'general', bindings: { provider: name } })
  expect(token.status).toBe(201)
  const rename = { name: freshName() }
  expect(await refused('PATCH', `${providers}/${model.provider_id}`, rename)).toEqual([409, 'conflict', 'name'])
  await call('DELETE', `/v1/tokens/${token.json.id}`)
  expect((await call('PATCH', `${providers}/${model.provider_id}`, rename)).status).toBe(200)
  expect((await call('DELETE', `${providers}/${model.provider_id}`)).status).toBe(200)
})

test('creates a model, finds it by its id with a slash, changes it, deletes it and creates it again', async () => {
  const fallback = await makeModel()
  const provider = await makeProvider({ api_key: apiKey })
  const second = await makeProvider()
  const body = {
    id: 'maker/model-1',
    provider_id: provider.id,
    upstream_model: 'model-1-2026',
    families: ['chat', 'embeddings'],
    price: { input_per_million: 0.15, output_per_million: 0.6 },
    max_output_tokens: 4096,
    fallbacks: [fallback.id],
    translation: 'strict',
    shadow: { provider_id: second.id, upstream_model: 'candidate', share: 2.5 },
  }
  const created = await call('POST', models, body)
  expect([created.status, created.json]).toMatchObject([201, body])
  const path = `${models}/maker%2Fmodel-1`
  expect((await call('GET', path)).json).toEqual(created.json)
  expect(await refused('POST', models, body)).toEqual([409, 'conflict', 'id'])
  expect(await refused('DELETE', `${models}/${fallback.id}`)).toEqual([409, 'conflict', null])
  expect(await refused('DELETE', `${providers}/${second.id}`)).toEqual([409, 'conflict', null])
  const unset = { price: null, families: null, fallbacks: [], shadow: null }
  const changed = await call('PATCH', path, { ...unset, upstream_model: null, translation: null })
  expect(changed.json).toMatchObject({ ...unset, upstream_model: 'maker/model-1', translation: 'lenient' })
  expect((await call('DELETE', path)).status).toBe(200)
  expect((await call('GET', path)).status).toBe(404)
  expect((await call('POST', models, body)).json.version).toBeGreaterThan(changed.json.version)
})

test('refuses a model with unknown references or families that its provider does not serve', async () => {
  const provider_id = (await makeProvider({ kind: 'anthropic' })).id
  const wrong: [object, string][] = [
    [{ provider_id: crypto.randomUUID() }, 'provider_id'],
    [{ fallbacks: ['no-such-model'] }, 'fallbacks.0'],
    [{ fallbacks: ['self'] }, 'fallbacks.0'],
    [{ families: ['messages', 'chat', 'embeddings'] }, 'families.2'],
    [{ families: [] }, 'families'],
    [{ id: 'a*' }, 'id'],
    [{ id: '' }, 'id'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ price: { input_per_million: 1 } }, 'price.output_per_million'],
    [{ shadow: { provider_id: crypto.randomUUID(), share: 1 } }, 'shadow.provider_id'],
    [{ shadow: { provider_id, share: 0, upstream_model: 'x' } }, 'shadow.share'],
    [{ shadow: { provider_id, share: 101, upstream_model: 'x' } }, 'shadow.share'],
    [{ shadow: { provider_id, share: 1 } }, 'shadow'],
  ]
  for (const [fields, param] of wrong) {
    const [status, , named] = await refused('POST', models, { id: 'self', provider_id, ...fields })
    expect([param, status, named]).toEqual([param, 422, param])
  }
})

test('a model shows what each of its targets costs, and whose price that is', async () => {
  const listed = await makeProvider()
  const own = await makeProvider({ default_price: { input_per_million: 3, output_per_million: 9 } })
  const unknown = await makeProvider()
  const targets = [
    { provider: listed.name, upstream_model: 'gpt-4o-mini' },
    { provider: own.name, upstream_model: 'not-in-the-table' },
    { provider: unknown.name, upstream_model: 'not-in-the-table' },
    { provider: unknown.name, upstream_model: 'dear', price: { input_per_million: 50, output_per_million: 60 } },
  ]
  const made = (await call('POST', models, { id: 'priced', targets })).json
  const dated = { source: expect.stringMatching(/^genai-prices /), date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) }
  const table = { input_per_million: 0.15, output_per_million: 0.6, cached_input_per_million: 0.075 }
  expect(made.price).toBeNull()
  expect(made.effective_prices).toEqual([
    { provider: listed.name, upstream_model: 'gpt-4o-mini', price: expect.objectContaining(table), ...dated },
    {
      ...{ provider: own.name, upstream_model: 'not-in-the-table', source: 'provider', date: null },
      price: { input_per_million: 3, output_per_million: 9 },
    },
    { provider: unknown.name, upstream_model: 'not-in-the-table', price: null, source: null, date: null },
    {
      ...{ provider: unknown.name, upstream_model: 'dear', source: 'operator', date: null },
      price: { input_per_million: 50, output_per_million: 60 },
    },
  ])
  const price = {
    input_per_million: 1,
    output_per_million: 2,
    tiers: [{ from_input_tokens: 100, input_per_million: 2, output_per_million: 4 }],
  }
  const changed = (await call('PATCH', `${models}/priced`, { price })).json
  expect(changed.effective_prices.map((each: { price: unknown }) => each.price)).toEqual([
    ...[price, price, price],
    { input_per_million: 50, output_per_million: 60 },
  ])
})

test('two models may fall back to each other', async () => {
  const one = await makeModel()
  const other = await makeModel({ fallbacks: [one.id] })
  expect((await call('PATCH', `${models}/${one.id}`, { fallbacks: [other.id] })).status).toBe(200)
  await call('PATCH', `${models}/${one.id}`, { fallbacks: [] })
})

test('pages of models go on where the last one ended, by their ids', async () => {
  const provider_id = (await makeProvider()).id
  const ids = ['page/c', 'page/a', 'page/b']
  for (const id of ids) await call('POST', models, { id, provider_id })
  const seen: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = await call('GET', `${models}?limit=2&provider_id=${provider_id}${cursor && `&cursor=${cursor}`}`)
    seen.push(...page.json.models.map(({ id }: { id: string }) => id))
    cursor = page.json.next_cursor
  }
  expect(seen).toEqual(ids.toSorted())
  const { next_cursor } = (await call('GET', `${models}?limit=1`)).json
  expect(await refused('GET', `${models}?provider_id=${provider_id}&cursor=${next_cursor}`)).toEqual([
    422,
    'invalid_cursor',
    'cursor',
  ])
})

test('creates, changes and deletes a gateway, but not one with usable tokens', async () => {
  const provider = await makeProvider()
  const created = await call('POST', gateways, {
    name: 'edge',
    spend_owner: 'organization',
    providers: [provider.name],
  })
  expect([created.status, created.json]).toMatchObject([
    201,
    { name: 'edge', spend_owner: 'organization', prompt_caching: false, providers: [provider.name] },
  ])
  const path = `${gateways}/${created.json.id}`
  const spend_owner = `team:${plane.teamId}`
  const changed = await call('PATCH', path, { prompt_caching: true, providers: null, spend_owner })
  expect(changed.json).toMatchObject({ prompt_caching: true, providers: null, spend_owner })
  const bindings = { gateway_id: created.json.id, team_id: plane.teamId }
  const token = await call('POST', '/v1/tokens', { name: 'x', purpose: 'gateway_runtime', bindings })
  expect(token.status).toBe(201)
  expect(await refused('DELETE', path)).toEqual([409, 'conflict', null])
  await call('DELETE', `/v1/tokens/${token.json.id}`)
  expect((await call('DELETE', path)).status).toBe(200)
  expect((await call('GET', path)).status).toBe(404)
})

test('a gateway refuses owners and providers that are not there', async () => {
  const wrong: [object, string][] = [
    [{ spend_owner: `user:${crypto.randomUUID()}` }, 'spend_owner'],
    [{ spend_owner: 'everybody' }, 'spend_owner'],
    [{ providers: ['no-such-provider'] }, 'providers.0'],
    [{ providers: [] }, 'providers'],
    [{ name: 'local' }, 'name'],
  ]
  for (const [fields, param] of wrong) {
    const [status, , named] = await refused('POST', gateways, { name: 'other', ...fields })
    expect([param, status, named]).toEqual([param, param === 'name' ? 409 : 422, param])
  }
})

test('no record is called by a secret of this installation', async () => {
  for (const path of [providers, gateways]) {
    const answer = await call('POST', path, { name: plane.adminToken, kind: 'simulator' })
    expect([answer.status, answer.json.error.param]).toEqual([422, 'name'])
    expect(JSON.stringify(answer.json)).not.toContain(plane.adminToken)
  }
})

test('reading needs catalog:read and writing catalog:write', async () => {
  const tokenOf = async (role: string) =>
    (await call('POST', '/v1/tokens', { name: 'x', purpose: 'general', roles: [role] })).json.token_value
  const [auditor, member] = [await tokenOf('auditor'), await tokenOf('member')]
  for (const path of [providers, models, gateways]) {
    expect((await plane.call('GET', path, { token: auditor })).status).toBe(200)
    expect((await plane.call('GET', path, { token: member })).status).toBe(403)
    expect((await plane.call('POST', path, { token: auditor, body: {} })).status).toBe(403)
    expect((await plane.call('GET', path)).status).toBe(401)
  }
})

test('a record names no model that could leave its segment of an address', async () => {
  const provider = await makeProvider({ kind: 'gemini' })
  const model = { id: 'climbs', provider_id: provider.id }
  for (const [param, change] of [
    ['id', { id: 'a/../b' }],
    ['id', { id: 'a//b' }],
    ['upstream_model', { upstream_model: '../../upload' }],
    ['upstream_model', { upstream_model: '%2e%2e/a' }],
    ['upstream_model', { upstream_model: 'a?b' }],
    ['fallbacks.0', { fallbacks: ['a/..'] }],
    ['upstream_model', { upstream_model: 'a b' }],
    ['upstream_model', { upstream_model: 'gemini-3-pro:generateContent' }],
    ['id', { id: 'gemini-3-pro:generateContent' }],
  ] as const) {
    const refused = await call('POST', models, { ...model, ...change })
    expect([refused.status, refused.json.error.param]).toEqual([422, param])
  }
  const elsewhere = await makeProvider()
  const path = `${models}/gemini-3-pro%3Acolon`
  expect((await call('POST', models, { id: 'gemini-3-pro:colon', provider_id: elsewhere.id })).status).toBe(201)
  const moved = await call('PATCH', path, { provider_id: provider.id })
  expect([moved.status, moved.json.error.param]).toEqual([422, 'id'])
})

test('a gateway compiles the catalog from the records', async () => {
  const provider = await makeProvider({ api_key: apiKey, timeouts: { idle_seconds: 7 } })
  const fallback = await makeModel()
  await call('POST', models, {
    id: 'compiled',
    provider_id: provider.id,
    upstream_model: 'up',
    families: ['chat'],
    max_output_tokens: 10,
    price: { input_per_million: 1, output_per_million: 2 },
    fallbacks: [fallback.id],
  })
  const gateway = await call('POST', gateways, {
    name: 'compiling',
    providers: [provider.name],
    spend_owner: 'organization',
    prompt_caching: true,
  })
  const { state: _state, ledger, directory } = plane.store
  const key = await openDataKey({ ledger, masterKey: plane.options.masterKey }, provider.id)
  const database = new Database(join(directory, 'state.db'), { readonly: true })
  const keys = { [provider.id]: Buffer.from(key ?? []).toString('base64') }
  const catalog = new CatalogView().read(database, gateway.json.id, keys, true)
  database.close()
  expect(catalog.gateway).toEqual({ spendOwner: 'organization', promptCaching: true })
  expect(catalog.providerList).toMatchObject([
    { id: provider.id, apiKey, timeouts: { idleSeconds: 7, totalSeconds: null } },
  ])
  expect(catalog.models.get('compiled')).toMatchObject({
    upstreamModel: 'up',
    families: ['chat'],
    maxOutputTokens: 10,
    fallbacks: [fallback.id],
    price: { source: 'operator' },
    shadow: null,
  })
})

test('clears the kept answers of one model or of all, for gateways by the version of the state', async () => {
  const clear = (body: object) => call('POST', '/v1/catalog/cache/clear', body)
  const one = await clear({ model: 'vendor/gpt' })
  const all = await clear({})
  const again = await clear({ model: 'vendor/gpt' })
  expect([one, all, again].map(({ status, json }) => [status, json.model])).toEqual([
    [200, 'vendor/gpt'],
    [200, null],
    [200, 'vendor/gpt'],
  ])
  const { cacheClears } = new CatalogView().read(
    new Database(join(plane.store.directory, 'state.db'), { readonly: true }),
    '',
    {},
    true,
  )
  expect(cacheClears.get('*')).toBe(all.json.version)
  expect(cacheClears.get('vendor/gpt')).toBe(again.json.version)
  expect(again.json.version).toBeGreaterThan(all.json.version)
  expect((await eventsOf('vendor/gpt')).filter(({ event_type }) => event_type === 'catalog.cache_cleared').length).toBe(
    2,
  )
  expect(await refused('POST', '/v1/catalog/cache/clear', { model: '' })).toEqual([422, 'invalid_parameter', 'model'])
  expect(await refused('POST', '/v1/catalog/cache/clear', { models: [] })).toEqual([422, 'unknown_parameter', 'models'])
})
