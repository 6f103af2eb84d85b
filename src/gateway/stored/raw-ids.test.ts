/** No answer shows the provider's id of a response or a conversation that the caller knows by a sealed one. */
import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { StoredResponses } from '../../../test/fakes/stored-responses.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let running: TestGateway
let store: StoredResponses
afterEach(() => running.stop())

/** `frames` are the data of a stream, made of the provider's id of the response before it. */
async function start(frames: ((previous: string) => readonly string[]) | null = null): Promise<void> {
  store = new StoredResponses()
  const upstream = (request: Request, body: string) => {
    if (frames === null || !body.includes('"stream":true')) return store.answer(request, body)
    const { previous_response_id: previous = '' } = z
      .object({ previous_response_id: z.string().optional() })
      .parse(JSON.parse(body))
    const text = frames(previous).map((data) => `data: ${data}\n\n`)
    return new Response(text.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
  running = await startTestGateway(upstream, { drain_seconds: 0, path_retries: 0 })
}

async function post(path: string, body: object): Promise<string> {
  const answer = await fetch(`${running.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return await answer.text()
}

const create = (members: object = {}) => post('responses', { model: 'gpt', input: 'Hi', ...members })
const idIn = (text: string) => z.object({ id: z.string() }).parse(JSON.parse(text)).id
const json = JSON.stringify

test('an answer that is not stored names what it continues by the ids that the caller sent', async () => {
  await start()
  const previous = idIn(await create())
  const conversation = idIn(await post('conversations', {}))
  const raw = [...store.responses.keys(), ...store.conversations.keys()]
  for (const stream of [false, true]) {
    const continued = await create({ store: false, stream, previous_response_id: previous })
    const inConversation = await create({ store: false, stream, conversation })
    expect(continued).toContain(`"previous_response_id":"${previous}"`)
    expect(inConversation).toContain(`"conversation":{"id":"${conversation}"}`)
    for (const id of raw) expect(continued + inConversation).not.toContain(id)
  }
})

test('a failed response shows no id of the provider in its error', async () => {
  await start((previous) => {
    const response = { id: 'resp_new', object: 'response', output: [], previous_response_id: previous }
    const error = { code: 'server_error', message: `${previous} cannot be continued by resp_new` }
    return [
      json({ type: 'response.created', response: { ...response, status: 'in_progress' } }),
      json({ type: 'response.failed', response: { ...response, status: 'failed', error } }),
    ]
  })
  const previous = idIn(await create())
  const text = await create({ stream: true, previous_response_id: previous })
  expect(text).toContain('cannot be continued by resp_')
  for (const id of ['resp_new', ...store.responses.keys()]) expect(text).not.toContain(id)
})

test('an error frame shows no id of the provider', async () => {
  await start(() => [
    json({
      type: 'response.created',
      response: { id: 'resp_new', object: 'response', status: 'in_progress', output: [] },
    }),
    json({ type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: 'a' }),
    json({
      type: 'error',
      code: 'server_error',
      message: 'Lost resp_new:\nresp_new, not xresp_new',
      sequence_number: 2,
    }),
  ])
  const text = await create({ stream: true })
  expect(text).toMatch(/Lost resp_[0-9a-f]{99,}:\\nresp_[0-9a-f]{99,}, not xresp_new"/)
})

test('a frame shows no id of the provider in response_id, nor where the name of its response has escapes', async () => {
  const response = { id: 'resp_new', object: 'response', status: 'in_progress', output: [] }
  await start(() => [
    `{"type":"response.created","respons\\u0065":${json(response)}}`,
    json({
      type: 'response.output_text.delta',
      response_id: 'resp_new',
      output_index: 0,
      content_index: 0,
      delta: 'a',
    }),
    json({ type: 'response.completed', response: { ...response, status: 'completed' } }),
  ])
  const text = await create({ stream: true })
  expect(text).toContain('"response_id":"resp_')
  expect(text).not.toContain('resp_new')
})

test('a failed response in the background shows no id of the provider when it is read', async () => {
  await start()
  const made = idIn(await create({ background: true }))
  const [id = ''] = store.responses.keys()
  store.end(id, 'failed', { error: { code: 'server_error', message: `${id} failed` } })
  await eventually(() => running.worker.journal.outcomes().length === 1)
  const read = await fetch(`${running.url}/v1/responses/${made}`, {
    headers: { authorization: `Bearer ${running.secret}` },
  })
  const text = await read.text()
  expect(text).toContain(`${made} failed`)
  expect(text).not.toContain(id)
})
