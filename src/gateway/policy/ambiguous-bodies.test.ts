/** What policies and limits read is what another reader of the same bytes would read. */
import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { messages } from '../../languages/messages/dialect.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { eventStream, policy, startPoliced } from '../testing/policies.ts'
import { testModel, testProvider } from '../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const forbidden = policy({ id: 'a', kind: 'term-filter', config: { terms: ['zebra'], action: 'block' } })
const codeOf = async (answer: Response) => {
  const { error } = z.object({ error: z.object({ code: z.string() }) }).parse(await answer.json())
  return [answer.status, error.code]
}

test('refuses a member that is repeated in another letter case', async () => {
  running = await startTestGateway(() => Response.json(completion))
  for (const body of [
    '{"Model":"b","model":"a","messages":[]}',
    '{"model":"a","messages":[],"STREAM":1,"stream":false}',
  ]) {
    expect(await codeOf(await running.chat(body))).toEqual([400, 'invalid_json'])
  }
  expect(running.seen).toEqual([])
})

test('refuses a duplicate nested member when policies read it, and passes it when none does', async () => {
  const twice = '{"model":"m","messages":[{"role":"user","content":"zebra","content":"ok"}]}'
  running = await startPoliced([forbidden])
  expect(await codeOf(await running.chat(twice))).toEqual([400, 'invalid_json'])
  expect(running.seen).toEqual([])
  running.worker.policies = (await startPoliced([])).worker.policies
  expect((await running.chat(twice)).status).toBe(200)
})

test('sends an answer with a duplicate member as the policies read it', async () => {
  const answers = policy({ ...forbidden, stages: ['pre_response'] })
  const choice = '"choices":[{"index":0,"message":{"role":"assistant","content":"zebra","content":"ok"}}]'
  running = await startPoliced(
    [answers],
    () => new Response(`{"id":"c",${choice}}`, { headers: { 'content-type': 'application/json' } }),
  )
  expect(await (await running.chat(question)).text()).not.toContain('zebra')
  await running.stop()
  const delta = '"choices":[{"index":0,"delta":{"content":"zebra","content":"ok"}}]'
  running = await startPoliced(
    [answers],
    () => new Response(`data: {"id":"c",${delta}}\n\ndata: [DONE]\n\n`, eventStream),
  )
  expect(await (await running.chat({ ...question, stream: true })).text()).not.toContain('zebra')
})

test('inspects request texts outside its messages', async () => {
  running = await startPoliced([forbidden])
  const schema = { type: 'object', properties: { a: { type: 'string', description: 'a zebra' } } }
  for (const members of [
    { stop: ['zebra'] },
    { metadata: { note: 'zebra' } },
    { unheard_of: { deep: ['zebra'] } },
    { response_format: { type: 'json_schema', json_schema: { name: 'n', description: 'zebra', schema: {} } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } },
    { tools: [{ type: 'function', function: { name: 'f', parameters: { enum: ['zebra'] } } }] },
  ]) {
    expect(await codeOf(await running.chat({ ...question, ...members }))).toEqual([400, 'content_policy_violation'])
  }
  expect(running.seen).toEqual([])
})

test('inspects a form field as text whatever filename its part names', async () => {
  running = await startPoliced([forbidden])
  const gateway = running
  const send = (...parts: [disposition: string, content: string][]) => {
    const all = [['name="file"; filename="a.wav"', 'RIFF'], ['name="model"', 'm'], ...parts]
    const lines = all.map(
      ([disposition, content]) => `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`,
    )
    return fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'multipart/form-data; boundary=b' },
      body: `${lines.join('')}--b--\r\n`,
    })
  }
  expect(await codeOf(await send(['name="prompt"; filename=""', 'zebra']))).toEqual([400, 'invalid_form'])
  expect(await codeOf(await send(['name="prompt[]"', 'zebra']))).toEqual([400, 'content_policy_violation'])
  expect(await codeOf(await send(['name="prompt"', 'zebra']))).toEqual([400, 'content_policy_violation'])
  expect(await codeOf(await send(['name="prompt"', 'a'], ['name="prompt"', 'zebra']))).toEqual([400, 'invalid_form'])
  expect(gateway.seen).toEqual([])
})

test('treats an error body with a success status as a failed call and tries another path', async () => {
  running = await startTestGateway(() => Response.json({ error: { message: 'boom', type: 'server_error' } }))
  const answer = await running.chat(question)
  expect(await codeOf(answer)).toEqual([502, 'upstream_provider_error'])
  const [outcome] = running.worker.journal.outcomes()
  expect(outcome).toMatchObject({ verdict: 'error', reason_code: 'provider.error' })
  expect(outcome?.event_cost_attribution).toBeUndefined()
  expect(running.worker.journal.attempts().length).toBeGreaterThan(1)
})

test('refuses a model name that climbs a path, and names the family of a foreign model', async () => {
  running = await startTestGateway(() => Response.json(completion))
  running.worker.upstreams.push(testProvider({ id: 'p', name: 'p', allowUnlistedModels: false }))
  running.worker.catalog.push(testModel({ id: 'vectors', providerId: 'p', families: ['embeddings'] }))
  for (const model of ['.', '..', 'a/../b', '%2e%2e/b', 'a//b', 'a\\b', 'a?b', 'a#b', 'a\nb']) {
    expect(await codeOf(await running.chat({ ...question, model }))).toEqual([404, 'model_not_found'])
  }
  expect(await codeOf(await running.chat({ ...question, model: 'vectors' }))).toEqual([400, 'model_family_unsupported'])
})

test('answers provider errors of another language, or without a type, in a form that messages clients read', () => {
  const reader = messages.reader({ model: 'm', exchangeId: 'e', usageAdded: false })
  const frameOf = (event: string | null, data: object) => ({
    event,
    data: JSON.stringify(data),
    bytes: new Uint8Array(0),
  })
  const error = { message: 'overload', type: 'overloaded_error' }
  for (const [event, said] of [
    [null, { error }],
    [null, { type: 'error', error }],
    ['message_delta', { error }],
  ] as const) {
    const own = reader.ownError?.(frameOf(event, said), 'request-1')
    expect(own?.event).toBe('error')
    expect(JSON.parse(own?.data ?? '')).toMatchObject({ type: 'error', error: { message: 'overload' } })
    expect(new TextDecoder().decode(own?.bytes)).toStartWith('event: error\ndata: {')
  }
  expect(reader.ownError?.(frameOf('error', { type: 'error', error }), 'request-1')).toBeNull()
})
