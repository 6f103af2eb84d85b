/** The models that providers offer beside the catalog, as clients list them. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'
import { testModel, testProvider } from './testing/worker.ts'

const created = 1_700_000_000
const lists: Record<string, () => Response> = {
  'Bearer sk-openai': () => Response.json({ object: 'list', data: [{ id: 'gpt-4o', created }, { id: '../bad' }, 7] }),
  'key-anthropic': () =>
    Response.json({ data: [{ id: 'claude-a', display_name: 'Claude A', created_at: '2025-01-01T00:00:00Z' }] }),
  'key-gemini': () =>
    Response.json({
      models: [
        { name: 'models/gemini-a', displayName: 'Gemini A', supportedGenerationMethods: ['generateContent'] },
        { name: 'models/imagen', supportedGenerationMethods: ['predict'] },
      ],
    }),
}

let running: TestGateway
let answers: typeof lists
beforeEach(async () => {
  answers = { ...lists }
  await running?.stop()
  running = await startTestGateway(
    ({ headers }) => {
      const key = headers.get('authorization') ?? headers.get('x-api-key') ?? headers.get('x-goog-api-key') ?? ''
      return answers[key]?.() ?? new Response('no', { status: 401 })
    },
    { drain_seconds: 0 },
  )
  const baseUrl = running.worker.upstreams[0]?.baseUrl ?? ''
  running.worker.upstreams.length = 0
  for (const [kind, apiKey] of [
    ['openai', 'sk-openai'],
    ['anthropic', 'key-anthropic'],
    ['gemini', 'key-gemini'],
  ] as const) {
    running.worker.upstreams.push(testProvider({ id: kind, name: kind, kind, baseUrl, apiKey }))
  }
  running.worker.catalog.push(testModel({ id: 'own', providerId: 'openai', createdAt: 1_000_000 }))
})
afterAll(() => running.stop())

const openai = (apiKey = running.secret) => new OpenAI({ apiKey, baseURL: `${running.url}/v1`, maxRetries: 0 })
const idsOf = async (secret?: string) => (await openai(secret).models.list()).data.map(({ id }) => id)
const lookups = () => running.seen.map(({ request }) => new URL(request.url).pathname).sort()

test('lists what providers offer after the models of the catalog', async () => {
  expect(await idsOf()).toEqual(['own', 'gpt-4o', 'claude-a', 'gemini-a'])
  expect(lookups()).toEqual(['/v1/models', '/v1/models', '/v1beta/models'])
  expect(await openai().models.retrieve('gpt-4o')).toMatchObject({
    id: 'gpt-4o',
    object: 'model',
    created,
    owned_by: 'openai',
  })
})

test('asks each provider once in some minutes', async () => {
  await Promise.all([idsOf(), idsOf(), idsOf()])
  await idsOf()
  expect(lookups()).toHaveLength(3)
})

test("answers Anthropic's clients in their own form, errors too", async () => {
  const client = new Anthropic({ apiKey: running.secret, baseURL: running.url, maxRetries: 0 })
  const { data } = await client.models.list()
  expect(data[2]).toEqual({
    type: 'model',
    id: 'claude-a',
    display_name: 'Claude A',
    created_at: '2025-01-01T00:00:00.000Z',
  } as never)
  expect(await client.models.retrieve('gemini-a')).toMatchObject({ id: 'gemini-a', display_name: 'Gemini A' })
  const missing = client.models.retrieve('none').then(
    () => null,
    (error: unknown) => error,
  )
  const error = await missing
  expect(error).toBeInstanceOf(Anthropic.NotFoundError)
  expect(error).toMatchObject({ error: { type: 'error', error: { type: 'not_found_error', code: 'model_not_found' } } })
})

test('reads other names of an offered model', async () => {
  expect(await openai().models.retrieve('models/gemini-a')).toMatchObject({ id: 'gemini-a' })
})

test('leaves out what the token may not use, and does not ask a provider that it is not bound to', async () => {
  expect(await idsOf(running.worker.addToken({ modelFilter: ['claude-*'] }))).toEqual(['claude-a'])
  running.seen.length = 0
  running.worker.upstreams.splice(0, 3, ...running.worker.upstreams.map((provider) => ({ ...provider })))
  expect(await idsOf(running.worker.addToken({ provider: 'gemini' }))).toEqual(['gemini-a'])
  expect(lookups()).toEqual(['/v1beta/models'])
})

test('leaves out a provider that takes no unlisted models', async () => {
  running.worker.upstreams.splice(
    1,
    1,
    testProvider({ id: 'a', name: 'a', kind: 'anthropic', allowUnlistedModels: false }),
  )
  expect(await idsOf()).toEqual(['own', 'gpt-4o', 'gemini-a'])
})

test('lists the rest when a provider does not answer with a list, and names it where a model is not found', async () => {
  answers['key-gemini'] = () => new Response('x'.repeat(100), { status: 500 })
  answers['key-anthropic'] = () => new Response('{"data":[', { headers: { 'content-type': 'application/json' } })
  expect(await idsOf()).toEqual(['own', 'gpt-4o'])
  const answer = await fetch(`${running.url}/v1/models/none`, {
    headers: { authorization: `Bearer ${running.secret}` },
  })
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({
    error: {
      message: expect.stringContaining('did not list their models: anthropic, gemini'),
      code: 'model_not_found',
    },
  })
  // A failure is remembered for a while.
  expect(lookups()).toHaveLength(3)
})

test('gives Codex an empty list in its own form, which leaves it its own catalog', async () => {
  const list = async (query: string) => {
    const headers = { authorization: `Bearer ${running.secret}` }
    return await (await fetch(`${running.url}/v1/models${query}`, { headers })).json()
  }
  expect(await list('?client_version=0.169.0')).toMatchObject({ models: [], data: [{ id: 'own' }, {}, {}, {}] })
  expect(await list('')).not.toHaveProperty('models')
})
