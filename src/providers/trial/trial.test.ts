import { expect, test } from 'bun:test'
import { systemClock } from '../../lib/clock.ts'
import { testServiceKey } from '../google/testing/service-key.ts'
import { providerKinds } from '../kinds/index.ts'
import { vertex } from '../kinds/vertex.ts'
import { PriceBook } from '../prices/price-book.ts'
import type { Fetch } from '../provider.ts'
import { tryProvider } from './trial.ts'

const key = 'secret-key-0123456789'
const prices = new PriceBook()

async function tried(kindName: string, fetch: Fetch, model: string | null = null) {
  await prices.load()
  const kind = providerKinds.get(kindName)
  if (kind === undefined) throw new Error(`There is no kind ${kindName}`)
  const provider = {
    ...{ id: 'p', name: 'p', kind: kindName, baseUrl: null, apiKey: key, headers: {}, allowUnlistedModels: true },
  }
  const { model: asked, steps } = await tryProvider({ provider, kind, model, fetch, clock: systemClock, prices })
  return { asked, steps: steps.map(({ step, ok, message }) => [step, ok, message]) }
}

const events = (...data: unknown[]) =>
  new Response(data.map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}\n\n`).join(''), {
    headers: { 'content-type': 'text/event-stream' },
  })
const chunk = (delta: object, finish: string | null = null) => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const completion = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
}
const streamed = () => events(chunk({ role: 'assistant', content: 'ok' }), chunk({}, 'stop'), '[DONE]')
const asksForStream = ({ body }: BunFetchRequestInit) =>
  new TextDecoder().decode(body as Uint8Array).includes('"stream":true')

test('asks the cheapest listed model that answers chats, once whole and once as a stream', async () => {
  const bodies: string[] = []
  const { asked, steps } = await tried('groq', async (url, init) => {
    if (url.endsWith('/models')) {
      return Response.json({
        data: [{ id: 'whisper-large-v3' }, { id: 'llama-3.3-70b-versatile' }, { id: 'llama-3.1-8b-instant' }],
      })
    }
    bodies.push(new TextDecoder().decode(init.body as Uint8Array))
    return asksForStream(init) ? streamed() : Response.json(completion)
  })
  expect(asked).toBe('llama-3.1-8b-instant')
  expect(steps).toEqual([
    ['models', true, 'It lists 3 models'],
    ['chat', true, 'llama-3.1-8b-instant answered and reported its usage'],
    ['stream', true, 'llama-3.1-8b-instant streamed its answer'],
  ])
  expect(bodies.map((body) => JSON.parse(body).max_completion_tokens)).toEqual([16, 16])
})

test('tells the error of the provider in plain words, without the key', async () => {
  const error = { error: { message: `Wrong key ${key} (secret-k...)`, type: 'invalid_request_error' } }
  const { steps } = await tried('openai', async () => Response.json(error, { status: 401 }), 'gpt-4o-mini')
  const message = 'The provider refused with status 401 (check the API key): Wrong key *** (***)'
  expect(steps).toEqual([
    ['models', false, message],
    ['chat', false, message],
    ['stream', false, message],
  ])
})

test('shows nothing of an answer that is no error of a provider', async () => {
  const page = () => new Response('<h1>intranet: top secret</h1>', { status: 500 })
  const { steps } = await tried('openai', async () => page(), 'm')
  expect(steps[1]).toEqual([
    'chat',
    false,
    'The provider refused with status 500 (the provider has a fault: try again later)',
  ])
  expect(JSON.stringify(steps)).not.toContain('intranet')
})

test('says that nothing listens, and skips the chats where no model is known', async () => {
  const refusing: Fetch = async () => {
    throw Object.assign(new TypeError('Unable to connect'), { code: 'ECONNREFUSED' })
  }
  const [, unset] = (await tried('azure-openai', refusing, 'm')).steps
  expect(unset).toEqual(['chat', false, 'An azure-openai provider needs a base URL'])
  expect((await tried('ollama', refusing)).steps).toEqual([
    ['models', false, 'The provider could not be asked: nothing listens there'],
    ['chat', null, 'No model is known to ask: name one'],
    ['stream', null, 'No model is known to ask: name one'],
  ])
})

test('says where a stream breaks off or is none', async () => {
  const stream = async (answer: () => Response) => {
    const { steps } = await tried('perplexity', async (_, init) =>
      asksForStream(init) ? answer() : Response.json({ nothing: true }),
    )
    expect(steps[0]?.[1]).toBeNull()
    expect(steps[1]).toEqual(['chat', false, 'sonar answered with something that is no chat completion'])
    return steps[2]
  }
  expect(await stream(() => events(chunk({ content: 'o' })))).toEqual([
    ...['stream', false],
    'The stream of sonar ended early, or could not be read',
  ])
  expect(await stream(() => Response.json(completion))).toMatchObject([
    'stream',
    false,
    expect.stringContaining('json'),
  ])
  expect(await stream(() => events({ error: { message: `Overloaded ${key}`, type: 'server_error' } }))).toEqual([
    ...['stream', false],
    'sonar broke its stream off: Overloaded ***',
  ])
})

test('asks a provider of another language in its own', async () => {
  const answer = {
    ...{ id: 'm1', type: 'message', role: 'assistant', model: 'claude', stop_reason: 'end_turn', stop_sequence: null },
    ...{ content: [{ type: 'text', text: 'ok' }], usage: { input_tokens: 3, output_tokens: 1 } },
  }
  const { steps } = await tried(
    'anthropic',
    async (url, init) => {
      if (url.includes('/models')) return Response.json({ data: [{ id: 'claude' }] })
      const body = JSON.parse(new TextDecoder().decode(init.body as Uint8Array))
      expect([url, body.max_tokens]).toEqual(['https://api.anthropic.com/v1/messages', 16])
      return Response.json(answer)
    },
    'claude',
  )
  expect(steps.slice(0, 2)).toEqual([
    ['models', true, 'It lists 1 model'],
    ['chat', true, 'claude answered and reported its usage'],
  ])
})

test('says why no access token for Vertex AI can be had, without the key', async () => {
  await prices.load()
  const apiKey = testServiceKey('https://oauth2.googleapis.com/token')
  const provider = { id: 'v', name: 'v', kind: 'vertex', baseUrl: null, apiKey, headers: {}, allowUnlistedModels: true }
  const fetch: Fetch = async () => Response.json({ error: 'invalid_grant' }, { status: 400 })
  const { steps } = await tryProvider({ provider, kind: vertex, model: null, fetch, clock: systemClock, prices })
  const why = 'The token endpoint of Google answered with status 400 (invalid_grant)'
  expect(steps.map(({ ok, message }) => [ok, message])).toEqual([
    [null, 'This kind of provider has no list of models that can be read'],
    [false, why],
    [false, why],
  ])
})
