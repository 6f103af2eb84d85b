import { expect, test } from 'bun:test'
import { responseForm, settingsRepeated, settingsRequest } from '../../languages/testing/response-form.ts'
import { SseSplitter } from '../../lib/http/sse.ts'
import { simulator } from './simulator.ts'

const provider = {
  id: 'sim',
  name: 'simulator',
  kind: 'simulator',
  baseUrl: null,
  apiKey: null,
  headers: {},
  allowUnlistedModels: false,
}

function ask(
  model: string,
  body: Record<string, unknown>,
  stream = false,
  family: 'chat' | 'responses' = 'chat',
): Promise<Response> {
  const call = {
    family,
    model,
    stream,
    body: new TextEncoder().encode(JSON.stringify({ model, stream, ...body })),
    contentType: 'application/json',
    headers: {},
    signal: new AbortController().signal,
    answerLimit: 1_000_000,
  }
  return simulator.send(provider, call, () => Promise.reject(new Error('The simulator must not use the network')))
}

const messages = [
  { role: 'system', content: 'Be brief' },
  { role: 'user', content: [{ type: 'text', text: ' Good  morning\nto you ' }] },
  { role: 'assistant', content: 'Yes' },
]

test('echo always returns the last user message, with usage', async () => {
  const once = await (await ask('simulator/echo', { messages })).text()
  expect(await (await ask('simulator/echo', { messages })).text()).toBe(once)
  expect(JSON.parse(once)).toMatchObject({
    object: 'chat.completion',
    model: 'simulator/echo',
    system_fingerprint: 'gatehouse-simulator',
    choices: [{ message: { role: 'assistant', content: ' Good  morning\nto you ' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 4, total_tokens: 11 },
  })
})

test('lorem has the length of max_tokens', async () => {
  expect(await (await ask('simulator/lorem', { messages, max_tokens: 3 })).json()).toMatchObject({
    choices: [{ message: { content: 'Lorem ipsum dolor' }, finish_reason: 'length' }],
    usage: { completion_tokens: 3 },
  })
  expect(await (await ask('simulator/lorem', { messages })).json()).toMatchObject({ usage: { completion_tokens: 64 } })
})

test('streams the same text in several frames and sends usage if it is asked for', async () => {
  const response = await ask('simulator/echo', { messages, stream_options: { include_usage: true } }, true)
  const data = new SseSplitter(1 << 20).push(await response.bytes()).map((frame) => frame.data ?? '')
  expect(data.at(-1)).toBe('[DONE]')
  const chunks = data.slice(0, -1).map((text) => JSON.parse(text))
  const spelled = chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.delta.content ?? '')
  expect(spelled.join('')).toBe(' Good  morning\nto you ')
  expect(chunks.length).toBeGreaterThan(4)
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 11 } })
})

test('a long stream lets other work have its turn', async () => {
  let turns = 0
  let waiting = setImmediate(function turn() {
    turns++
    waiting = setImmediate(turn)
  })
  const long = await ask('simulator/echo', { messages: [{ role: 'user', content: 'word '.repeat(2048) }] }, true)
  turns = 0
  const reader = long.body?.getReader()
  while ((await reader?.read())?.done === false);
  clearImmediate(waiting)
  expect(turns).toBeGreaterThanOrEqual(7)
})

test('an unknown model is refused in the language of the family', async () => {
  const response = await ask('simulator/none', { messages })
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { code: 'model_not_found' } })
})

test('refuses an input of another form in the language of the family', async () => {
  const refused = await ask('simulator/echo', { messages: 1 })
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'invalid_type' } }])
})

test('a response has every member that clients require and repeats the settings of its request', async () => {
  const plain = await (await ask('simulator/echo', { input: 'Hi' }, false, 'responses')).json()
  expect(responseForm.parse(plain)).toMatchObject({ instructions: null, tools: [], temperature: 1, metadata: {} })
  const request = { input: 'Hi', ...settingsRequest }
  expect(responseForm.parse(await (await ask('simulator/echo', request, false, 'responses')).json())).toMatchObject(
    settingsRepeated,
  )
  const stream = await (await ask('simulator/echo', request, true, 'responses')).bytes()
  const events = new SseSplitter(1 << 20).push(stream).map(({ data }) => JSON.parse(data ?? '{}'))
  const responses = events.flatMap(({ response }) => response ?? [])
  expect(responses).toHaveLength(3)
  for (const response of responses) expect(responseForm.parse(response)).toMatchObject(settingsRepeated)
})
