import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryLimitApi } from '../testing/limit-api.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryLimitApi>
beforeAll(async () => {
  made = await temporaryInstallation()
  call = temporaryLimitApi(made)
})
afterAll(() => made.store.remove())

async function makeToken(metadata: Record<string, string>): Promise<string> {
  const { json } = await call('POST', '/v1/tokens', { name: 'app', purpose: 'general', metadata })
  return json.id
}

const path = '/v1/attribution-dimensions'
const source = (key: string, kind = 'token_metadata') => ({ source: { kind, key } })

async function stateHas(id: string): Promise<unknown> {
  const [row] = await made.store.state.read<{ metadata: string }>('select metadata from tokens where id = ?', [id])
  return JSON.parse(row?.metadata ?? 'null')
}

test('the state holds the metadata of tokens that dimensions read, as long as they are declared', async () => {
  const metadata = { customer: 'acme', product: 'search', secret: 'of the owner alone' }
  const [early, other] = [await makeToken(metadata), await makeToken({ secret: 'x' })]
  const unrelated = (await call('GET', `/v1/tokens/${other}`)).json.version
  expect([await stateHas(early), await stateHas(other)]).toEqual([{}, {}])
  const { id } = (await call('POST', path, { name: 'customer', ...source('customer') })).json
  await call('POST', path, { name: 'place', ...source('secret', 'header') })
  const late = await makeToken(metadata)
  expect([await stateHas(early), await stateHas(late)]).toEqual([{ customer: 'acme' }, { customer: 'acme' }])
  await call('PATCH', `/v1/tokens/${late}`, { metadata: { customer: 'globex', secret: 'y' } })
  expect(await stateHas(late)).toEqual({ customer: 'globex' })
  expect((await call('PATCH', `${path}/${id}`, source('product'))).status).toBe(200)
  expect([await stateHas(early), await stateHas(late)]).toEqual([{ product: 'search' }, {}])
  await call('DELETE', `${path}/${id}`)
  expect(await stateHas(early)).toEqual({})
  expect((await call('GET', `/v1/tokens/${early}`)).json.metadata).toEqual(metadata)
  expect((await call('GET', `/v1/tokens/${other}`)).json.version).toBe(unrelated)
})

test('a token whose metadata a dimension took up can be changed by its version, and in both databases alike', async () => {
  const id = await makeToken({ plan: 'large' })
  await call('POST', path, { name: 'plan', ...source('plan') })
  const { headers, json } = await call('GET', `/v1/tokens/${id}`)
  const changed = await call(
    'PATCH',
    `/v1/tokens/${id}`,
    { name: 'renamed' },
    { 'if-match': headers.get('etag') ?? '' },
  )
  expect([changed.status, changed.json.version > json.version]).toEqual([200, true])
})
