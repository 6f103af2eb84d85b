/** The answer cache and a shadow target of a whole installation: through restarts, a kill, and the command line. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { chatAnswer } from '../fakes/chat.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { signal } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const dataDirectory = join(temporaryDirectory(), 'data')
let upstream: FakeUpstream
let gatehouse: Gatehouse
let token: { id: string; token_value: string }

const start = (adminToken = '') =>
  startGatehouse({ upstream, dataDirectory, adminToken, env: { SERVICE_GATEWAY_WORKERS: '2' } })

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await start()
  token = await createToken(gatehouse)
  const policy = { name: 'again', kind: 'answer-cache', stages: ['pre_request'], config: { seconds: 600 } }
  expectAnswer(await api(gatehouse, '/v1/policies', { body: policy }), 201, z.looseObject({}))
  await until('the gateway has the policy', async () => (await ask('first')) !== null)
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

/** Whether the answer came from the cache. */
async function ask(text: string, more: Partial<Parameters<typeof chat>[1]> = {}): Promise<string | null> {
  const { status, headers, body } = await chat(gatehouse, { token: token.token_value, text, ...more })
  await new Response(body).text()
  return status === 200 ? headers.get('x-service-cache') : String(status)
}
const calls = (text: string) => upstream.calls.filter(({ body }) => body.toString().includes(text)).length
const cacheFiles = () => readdirSync(join(dataDirectory, 'gateway')).filter((name) => name.startsWith('answers.db'))
const cachedText = () =>
  cacheFiles()
    .map((name) => readFileSync(join(dataDirectory, 'gateway', name), 'latin1'))
    .join('')

test('all workers answer from one store, which a kill and a restart leave whole', async () => {
  expect(await ask('kept for later')).toBe('miss')
  await until('the answer is in the file', () => existsSync(join(dataDirectory, 'gateway', 'answers.db')))
  await Bun.sleep(200)
  for (let count = 0; count < 20; count++) expect(await ask('kept for later')).toBe('hit')
  expect(calls('kept for later')).toBe(1)
  for (let count = 0; count < 5; count++) {
    for (let at = 0; at < 20; at++) await ask(`filler ${count} ${at}`, { stream: at % 2 === 0 })
    signal(gatehouse.gatewayPid(), 'SIGKILL')
    await until('a gateway answers', async () => (await ask('kept for later').catch(() => null)) === 'hit')
  }
  await gatehouse.end('SIGTERM')
  gatehouse = await start(gatehouse.adminToken)
  expect([await ask('kept for later'), calls('kept for later')]).toEqual(['hit', 1])
})

test('the command clears what every worker has, and the text goes from the disk', async () => {
  upstream.when('secretive', jsonReply(chatAnswer({ parts: ['a-text-to-be-cleared'] })))
  const secretive = { model: 'secretive' }
  expect(await ask('soon cleared', secretive)).toBe('miss')
  await Bun.sleep(200)
  expect(await ask('soon cleared', secretive)).toBe('hit')
  expect(cachedText()).toContain('a-text-to-be-cleared')
  const other = await operate(gatehouse, 'cache', 'clear', '--model', 'another')
  expect(other.code).toBe(0)
  const { code, stdout } = await operate(gatehouse, 'cache', 'clear', '--model', 'secretive', '--json')
  expect([code, JSON.parse(stdout).model]).toEqual([0, 'secretive'])
  upstream.when('secretive', jsonReply())
  await until('no worker gives it', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, () => ask('soon cleared', secretive)))
    return upstream.calls.filter(({ model }) => model === 'secretive').length > 1 && !results.includes(null)
  })
  expect(await ask('kept for later')).toBe('hit')
  await until('the text is gone', () => !cachedText().includes('a-text-to-be-cleared'), { withinMs: 25_000 })
  const cleared = eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'catalog.cache_cleared')
  expect(cleared.map(({ details }) => details?.model_id)).toEqual(['another', 'secretive'])
})

test('a revoked token gets nothing that is kept', async () => {
  const other = await createToken(gatehouse)
  expect(await ask('of a token', { token: other.token_value })).toBe('miss')
  await revoke(gatehouse, other.id)
  expect(await ask('of a token', { token: other.token_value })).toBe('401')
})

test('a model with a shadow answers as before, and the comparison is recorded once', async () => {
  const providers = z.looseObject({ providers: z.array(z.looseObject({ id: z.string(), name: z.string() })) })
  const found = expectAnswer(await api(gatehouse, '/v1/catalog/providers'), 200, providers).providers
  const openai = found.find(({ name }) => name === 'openai')
  const body = {
    ...{ id: 'shadowed', provider_id: openai?.id, upstream_model: 'current' },
    shadow: { provider_id: openai?.id, upstream_model: 'candidate', share: 100 },
  }
  expectAnswer(await api(gatehouse, '/v1/catalog/models', { body }), 201, z.looseObject({}))
  let asked = 0
  await until('both workers have the model', async () => {
    await ask(`warm ${asked++}`, { model: 'shadowed' })
    return upstream.calls.slice(-8).filter(({ model }) => model === 'candidate').length === 4
  })
  const requestId = 'compare-this'
  expect(await ask('compare this', { model: 'shadowed', requestId })).toBe('miss')
  expect(await ask('compare this', { model: 'shadowed' })).toBe('hit')
  const ofText = () => upstream.calls.filter(({ body: sent }) => sent.toString().includes('compare this'))
  await until('it was sent again', () => ofText().length === 2)
  expect(ofText().map(({ model }) => model)).toEqual(['current', 'candidate'])
  const shadows = () =>
    eventsInLedger(gatehouse).filter(
      ({ event_type: type, request_id: id }) => type === 'gateway.shadow.outcome' && id === requestId,
    )
  await until('its event is in the ledger', () => shadows().length === 1)
  expect(shadows()).toMatchObject([{ verdict: 'allow', details: { model: 'shadowed', status: 200 } }])
})
