/** Models with several targets and providers with several keys, by the API. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedTexts } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
  for (const name of ['one', 'two']) expect((await makeProvider(name)).status).toBe(201)
})
afterAll(() => plane.remove())

const models = '/v1/catalog/models'
const call = (method: string, path: string, body?: unknown) =>
  plane.call(method, path, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })
const makeProvider = (name: string, fields: object = {}) =>
  call('POST', '/v1/catalog/providers', { name, kind: 'openai', ...fields })
const refused = async (...sent: Parameters<typeof call>) => {
  const { status, json } = await call(...sent)
  return [status, json.error?.code, json.error?.param]
}

test('creates, shows and changes a model with several targets', async () => {
  const targets = [
    { provider: 'one', weight: 3 },
    { provider: 'two', upstream_model: 'other', tier: 2, price: { input_per_million: 1, output_per_million: 2 } },
  ]
  const created = await call('POST', models, { id: 'several', targets, strategy: 'weighted' })
  expect(created.status).toBe(201)
  expect(created.json).toMatchObject({
    upstream_model: 'several',
    strategy: 'weighted',
    targets: [
      { provider: 'one', weight: 3, tier: 1 },
      { ...targets[1], weight: 1 },
    ],
  })
  const page = await call('GET', `${models}?provider_id=${created.json.provider_id}`)
  expect(page.json.models.map(({ id }: { id: string }) => id)).toContain('several')
  const changed = await call('PATCH', `${models}/several`, { targets: [{ provider: 'two' }], strategy: null })
  expect(changed.json).toMatchObject({ strategy: 'priority', targets: [{ provider: 'two', weight: 1, tier: 1 }] })
  expect((await call('PATCH', `${models}/several`, { upstream_model: 'x' })).json.targets).toMatchObject([
    { provider: 'two', upstream_model: 'x' },
  ])
})

test('shows a model with a provider_id as one target', async () => {
  const provider_id = (await makeProvider('single')).json.id
  const created = await call('POST', models, { id: 'single', provider_id })
  expect(created.json.targets).toEqual([{ provider: 'single', upstream_model: 'single', weight: 1, tier: 1 }])
})

test('refuses targets that cannot be used, and names the field', async () => {
  const make = (fields: object) => refused('POST', models, { id: 'bad', ...fields })
  const one = { provider: 'one' }
  const invalid = (param: string) => [422, 'invalid_parameter', param]
  expect(await make({})).toEqual(invalid('provider_id'))
  expect(await make({ targets: [] })).toEqual(invalid('targets'))
  expect(await make({ targets: [{ provider: 'nobody' }] })).toEqual(invalid('targets.0.provider'))
  expect(await make({ targets: [one, one] })).toEqual(invalid('targets.1'))
  expect(await make({ targets: [one], upstream_model: 'x' })).toEqual(invalid('upstream_model'))
  expect(await make({ targets: [{ ...one, weight: -1 }] })).toEqual(invalid('targets.0.weight'))
  const zero = { provider: 'one', weight: 0 }
  const sum = [{ provider: 'two', tier: 2 }, zero]
  expect(await make({ targets: sum, strategy: 'weighted' })).toEqual(invalid('targets'))
  expect((await call('POST', models, { id: 'zero', targets: sum, strategy: 'least_busy' })).status).toBe(201)
  expect(await refused('PATCH', `${models}/zero`, { strategy: 'weighted' })).toEqual(invalid('targets'))
  expect(await refused('PATCH', `${models}/zero`, { upstream_model: 'x' })).toEqual(invalid('upstream_model'))
})

test('keeps a provider that is a target of a model', async () => {
  const { json } = await makeProvider('used')
  await call('POST', models, { id: 'uses', targets: [{ provider: 'one' }, { provider: 'used' }] })
  expect(await refused('DELETE', `/v1/catalog/providers/${json.id}`)).toEqual([409, 'conflict', null])
})

test('takes further keys, shows how many there are, and never a key', async () => {
  const created = await makeProvider('keys', { api_key: 'sk-first-one', more_api_keys: 'sk-second-one\nsk-third-one' })
  expect(created.json).toMatchObject({ has_api_key: true, api_key_count: 3 })
  const path = `/v1/catalog/providers/${created.json.id}`
  expect((await call('PATCH', path, { more_api_keys: null })).json.api_key_count).toBe(1)
  expect(await refused('PATCH', path, { more_api_keys: 'same-key same-key' })).toEqual([
    422,
    'invalid_parameter',
    'more_api_keys',
  ])
  expect(
    await refused('POST', '/v1/catalog/providers', { name: 'none', kind: 'openai', more_api_keys: 'sk-x' }),
  ).toEqual([422, 'invalid_parameter', 'more_api_keys'])
  await call('PATCH', path, { more_api_keys: 'sk-fourth-one' })
  expect(await refused('PATCH', path, { base_url: 'https://example.com', api_key: 'sk-new' })).toEqual([
    422,
    'invalid_parameter',
    'more_api_keys',
  ])
  expect(await recordedTexts(plane.store.ledger)).not.toContain('sk-second-one')
  expect(created.text).not.toContain('sk-')
})
