/** The members of a request that are the gateway's own: what becomes of each on its way to the provider. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { GatewayRecord } from '../../fleet/protocol/worker.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'

let running: TestGateway
let answer: () => Response
beforeEach(async () => {
  answer = () => Response.json(completion)
  running = await startTestGateway(() => answer(), { drain_seconds: 0 })
})
afterEach(() => running.stop())

const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(running.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json', ...headers },
    body,
  })
const chat = (body: string, headers?: Record<string, string>) => post('/v1/chat/completions', body, headers)
const sent = () => running.seen.at(-1)?.body
const lastEvent = () => running.worker.journal.outcomes().at(-1)

describe('session_id', () => {
  test('is removed from the body with its comma, and recorded on the event', async () => {
    await chat('{ "model" :"gpt-test", "session_id" : "s-1" , "messages":[] }')
    expect(sent()).toBe('{ "model" :"gpt-test" , "messages":[] }')
    expect(lastEvent()).toMatchObject({ event_attribution: { session_id: 's-1' } })
  })

  test('may be a header, which is not forwarded, or both when they agree', async () => {
    await chat('{"model":"gpt-test","messages":[]}', { 'x-session-id': 's-2' })
    expect(running.seen.at(-1)?.request.headers.get('x-session-id')).toBeNull()
    expect(lastEvent()).toMatchObject({ event_attribution: { session_id: 's-2' } })
    const both = await chat('{"model":"gpt-test","messages":[],"session_id":"s-3"}', { 'x-session-id': 's-3' })
    expect([both.status, sent()]).toEqual([200, '{"model":"gpt-test","messages":[]}'])
  })

  test('is refused with 422 session_id_mismatch when it differs from x-session-id', async () => {
    for (const path of ['/v1/chat/completions', '/v1/responses']) {
      const body = '{"model":"gpt-test","messages":[],"session_id":"a"}'
      const refused = await post(path, body, { 'x-session-id': 'b' })
      expect(refused.status).toBe(422)
      expect(await refused.json()).toMatchObject({ error: { code: 'session_id_mismatch', param: 'session_id' } })
    }
    expect(running.seen.length).toBe(0)
  })

  test('must have its form, and null counts as absent', async () => {
    for (const value of ['""', '7', '"a\\nb"', `"${'x'.repeat(257)}"`, '"ü"']) {
      const refused = await chat(`{"model":"gpt-test","messages":[],"session_id":${value}}`)
      expect([value, refused.status]).toEqual([value, 422])
    }
    const long = await chat('{"model":"gpt-test","messages":[]}', { 'x-session-id': 'x'.repeat(257) })
    expect(await long.json()).toMatchObject({ error: { param: 'x-session-id' } })
    await chat('{"model":"gpt-test","messages":[],"session_id":null}')
    expect(sent()).toBe('{"model":"gpt-test","messages":[]}')
  })

  test('belongs to chat and responses, and passes unchanged elsewhere', async () => {
    const body = '{"model":"gpt-test","input":"x","session_id":"a"}'
    await post('/v1/embeddings', body, { 'x-session-id': 'b' })
    expect(sent()).toBe(body)
    expect(lastEvent()).toMatchObject({ event_attribution: { session_id: null } })
  })
})

describe('cache_control', () => {
  const cached =
    '{"model":"gpt-test","messages":[{"role":"system","content":"x"}],"cache_control":{"type":"ephemeral"}}'
  const bare = '{"model":"gpt-test","messages":[{"role":"system","content":"x"}]}'
  const allowCaching = () => {
    const record: GatewayRecord = { spendOwner: null, promptCaching: true }
    Object.assign(running.worker.view, { gateway: record })
  }

  test('is removed and recorded when the gateway does not allow caching', async () => {
    await chat(cached)
    expect(sent()).toBe(bare)
    expect(lastEvent()).toMatchObject({ details: { notes: ['cache_control.removed'] } })
  })

  test('becomes a cache key shared by requests of one session or one prefix', async () => {
    allowCaching()
    const keyOf = async (body: string, headers?: Record<string, string>) => {
      await chat(body, headers)
      const { prompt_cache_key: key, cache_control: control } = JSON.parse(sent() ?? '')
      expect(control).toBeUndefined()
      expect(key).toMatch(/^[0-9a-f]{32}$/)
      return key
    }
    const prefix = await keyOf(cached)
    expect(lastEvent()).toMatchObject({ details: { notes: ['cache_control.translated'] } })
    expect(await keyOf(cached.replace('}]', '},{"role":"user","content":"more"}]'))).toBe(prefix)
    expect(await keyOf(cached.replace('"x"', '"y"'))).not.toBe(prefix)
    const session = await keyOf(cached, { 'x-session-id': 's' })
    expect(await keyOf(cached.replace('"x"', '"y"'), { 'x-session-id': 's' })).toBe(session)
    expect(session).not.toBe(prefix)
  })

  test('keeps the cache key of the caller, must have its form, and is ignored by other families', async () => {
    allowCaching()
    await chat('{"model":"gpt-test","messages":[],"prompt_cache_key":"mine","cache_control":{"type":"ephemeral"}}')
    expect(sent()).toBe('{"model":"gpt-test","messages":[],"prompt_cache_key":"mine"}')
    for (const value of ['true', '{"type":"forever"}', '{"type":"ephemeral","ttl":"1y"}']) {
      const refused = await chat(`{"model":"gpt-test","messages":[],"cache_control":${value}}`)
      expect(refused.status).toBe(422)
      expect(await refused.json()).toMatchObject({ error: { param: 'cache_control' } })
    }
    const body = '{"model":"gpt-test","input":"x","cache_control":{"type":"ephemeral"}}'
    await post('/v1/embeddings', body)
    expect(sent()).toBe(body)
  })
})

describe('response_format', () => {
  const responses = (body: string) => post('/v1/responses', body)
  const schema = { name: 'answer', strict: true, schema: { type: 'object' } }
  const format = JSON.stringify({ type: 'json_schema', json_schema: schema })
  const textFormat = { type: 'json_schema', ...schema }

  test('passes unchanged on chat', async () => {
    const body = `{"model":"gpt-test","messages":[],"response_format":${format}}`
    await chat(body)
    expect(sent()).toBe(body)
  })

  test('becomes text.format on responses and keeps other members of text', async () => {
    await responses(`{"model":"gpt-test","response_format":${format},"input":"x"}`)
    expect(JSON.parse(sent() ?? '')).toEqual({ model: 'gpt-test', input: 'x', text: { format: textFormat } })
    await responses(`{"model":"gpt-test","text":{"verbosity":"low"},"input":"x","response_format":${format}}`)
    expect(JSON.parse(sent() ?? '').text).toEqual({ verbosity: 'low', format: textFormat })
  })

  test('is accepted beside an equal text.format and refused beside another', async () => {
    const both = { model: 'gpt-test', input: 'x', text: { format: textFormat } }
    await responses(JSON.stringify({ ...both, response_format: JSON.parse(format) }))
    expect(sent()).toBe(JSON.stringify(both))
    const refused = await responses(JSON.stringify({ ...both, response_format: { type: 'json_object' } }))
    expect(refused.status).toBe(422)
    expect(await refused.json()).toMatchObject({ error: { param: 'response_format' } })
  })

  test('is 422 on messages', async () => {
    const refused = await post('/v1/messages', '{"model":"gpt-test","messages":[],"response_format":{"type":"text"}}')
    expect(refused.status).toBe(422)
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
  })
})

describe('stream_options', () => {
  const usageFrame = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}\n\n'
  const frames = ['data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', usageFrame, 'data: [DONE]\n\n']
  beforeEach(() => {
    answer = () => new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } })
  })

  test('requests usage when the caller did not, and removes the usage frame again', async () => {
    const answered = await chat('{"model":"gpt-test","messages":[],"stream":true}')
    expect(await answered.text()).toBe(frames.filter((frame) => frame !== usageFrame).join(''))
    expect(sent()).toBe('{"model":"gpt-test","messages":[],"stream":true,"stream_options":{"include_usage":true}}')
    expect(lastEvent()).toMatchObject({
      event_cost_attribution: { input_tokens: 5, output_tokens: 3, estimated: false },
    })
  })

  test('keeps other options of the caller and does not change a request for usage', async () => {
    const odd = '{"model":"gpt-test","messages":[],"stream":true,"stream_options":{"include_usage":false,"x":1}}'
    await chat(odd)
    expect(sent()).toBe(odd.replace('false', 'true'))
    const asked = '{"model":"gpt-test","messages":[],"stream":true,"stream_options": {"include_usage" : true}}'
    expect(await (await chat(asked)).text()).toBe(frames.join(''))
    expect(sent()).toBe(asked)
  })

  test('is added to streamed legacy completions and to no whole request', async () => {
    await post('/v1/completions', '{"model":"gpt-test","prompt":"x","stream":true}')
    expect(sent()).toContain('"include_usage":true')
    answer = () => Response.json(completion)
    await chat(JSON.stringify(question))
    expect(sent()).toBe(JSON.stringify(question))
  })
})

test('records that no policy read tokenized input', async () => {
  const notes = () => lastEvent()?.details?.notes
  for (const input of ['[1,2]', '[[1,2],[3]]', '["text",[1]]']) {
    await post('/v1/embeddings', `{"model":"gpt-test","input":${input}}`)
    expect(notes()).toEqual(['input.tokens_not_read'])
    await post('/v1/completions', `{"model":"gpt-test","prompt":${input}}`)
    expect(notes()).toEqual(['input.tokens_not_read'])
  }
  await post('/v1/embeddings', '{"model":"gpt-test","input":["text"]}')
  expect(notes()).toBeUndefined()
})
