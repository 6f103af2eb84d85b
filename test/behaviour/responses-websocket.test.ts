/** The OpenAI SDK's own WebSocket client for responses, which dials `/v1/responses` itself. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { openSocket } from '../../src/gateway/testing/socket.ts'
import { isObject, parseObject } from '../../src/languages/reading/json-value.ts'
import { eventFrames } from '../fakes/responses.ts'
import { startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken, revoke } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 240_000)
afterAll(() => gatehouse?.stop())

describe('responses over a WebSocket', () => {
  test('the SDK gets the events of each request in order, and an error for a refused one', async () => {
    const { token_value: apiKey, id } = await createToken(gatehouse)
    const socket = new ResponsesWS(new OpenAI({ apiKey, baseURL: `${gatehouse.gatewayUrl}/v1` }))
    const types: string[] = []
    let completed = 0
    const errors: unknown[] = []
    socket.on('event', ({ type }) => {
      types.push(type)
      if (type === 'response.completed') completed += 1
    })
    socket.on('error', (error) => errors.push(error))
    for (const input of ['one', 'two']) socket.send({ type: 'response.create', model: 'simulator/echo', input })
    await eventually(() => completed === 2)
    expect(types.filter((type) => type === 'response.created')).toHaveLength(2)
    expect(types.indexOf('response.completed')).toBeLessThan(types.lastIndexOf('response.created'))
    await revoke(gatehouse, id)
    socket.send({ type: 'response.create', model: 'simulator/echo', input: 'three' })
    await eventually(() => errors.length > 0)
    expect(String(errors[0])).toContain('has been revoked')
    socket.close()
  })

  test('the SDK continues a response, and sends the conversation whole where it is not known', async () => {
    const { token_value: apiKey } = await createToken(gatehouse)
    const socket = new ResponsesWS(new OpenAI({ apiKey, baseURL: `${gatehouse.gatewayUrl}/v1` }))
    const ids: string[] = []
    const texts: string[] = []
    const errors: unknown[] = []
    socket.on('response.completed', ({ response }) => {
      ids.push(response.id)
      for (const item of response.output) {
        if (item.type === 'message')
          for (const part of item.content) if (part.type === 'output_text') texts.push(part.text)
      }
    })
    socket.on('error', (error) => errors.push(error))
    const ask = (frame: object) =>
      socket.send({ type: 'response.create', model: 'simulator/echo', store: false, ...frame })
    ask({ generate: false, input: 'Be brief' })
    await eventually(() => ids.length === 1)
    expect(texts).toEqual([])
    ask({ previous_response_id: ids[0], input: 'one' })
    await eventually(() => ids.length === 2)
    expect(texts).toEqual(['one'])
    ask({ previous_response_id: ids[0], input: 'two' })
    await eventually(() => errors.length === 1)
    expect(String(errors[0])).toContain('send the whole input without previous_response_id')
    ask({ input: 'one, two' })
    await eventually(() => ids.length === 3)
    expect(texts).toEqual(['one', 'one, two'])
    socket.close()
  })

  test('refuses another frame type and a stream_id with 422 and keeps the connection', async () => {
    const { token_value: secret } = await createToken(gatehouse)
    for (const path of ['/v1/responses', '/v1/responses/ws']) {
      const socket = await openSocket(gatehouse.gatewayUrl.replace('http', 'ws') + path, {
        authorization: `Bearer ${secret}`,
      })
      const refused = [
        [{ type: 'response.steer', model: 'simulator/echo', input: 'x' }, 'type'],
        [{ type: 'response.create', stream_id: 'a', model: 'simulator/echo', input: 'x' }, 'stream_id'],
      ] as const
      for (const [frame, param] of refused) {
        socket.send(JSON.stringify(frame))
        const [text = ''] = await socket.frames(1)
        expect(JSON.parse(text)).toMatchObject({
          type: 'error',
          status: 422,
          error: { code: 'invalid_parameter', param },
        })
      }
      socket.send(JSON.stringify({ type: 'response.create', model: 'simulator/echo', input: 'x' }))
      expect(JSON.parse((await socket.frames(1))[0] ?? '')).toMatchObject({ type: 'response.created' })
      socket.close()
    }
  })

  test('answers a plain request on the same path, and refuses a GET without an upgrade', async () => {
    const { token_value: secret } = await createToken(gatehouse)
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'simulator/echo', input: 'x' })
    const address = `${gatehouse.gatewayUrl}/v1/responses`
    expect((await fetch(address, { method: 'POST', headers, body })).status).toBe(200)
    expect((await fetch(address, { headers })).status).toBe(405)
  })
})

test('the frames of Codex cost one request to the provider each, without the one that opens the conversation', async () => {
  const upstream = await startFakeUpstream()
  await using behind = await startGatehouse({ upstream })
  const items = [
    {
      id: 'fc_1',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_1',
      name: 'exec_command',
      arguments: '{}',
    },
    {
      id: 'ctc_1',
      type: 'custom_tool_call',
      status: 'completed',
      call_id: 'call_2',
      name: 'apply_patch',
      input: '***',
    },
    {
      id: 'msg_1',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Done' }],
    },
  ]
  upstream.when('gpt-5.5', () => {
    const item = items[upstream.calls.length - 1]
    const response = { id: `resp_${upstream.calls.length}`, object: 'response', store: false, output: [item] }
    return streamReply(eventFrames([{ type: 'response.completed', response: { ...response, status: 'completed' } }]))
  })
  const { token_value: secret } = await createToken(behind)
  const socket = await openSocket(`${behind.gatewayUrl.replace('http', 'ws')}/v1/responses`, {
    authorization: `Bearer ${secret}`,
    'openai-beta': 'responses_websockets=2026-02-06',
  })
  const recorded = await Bun.file(join(import.meta.dir, '../fakes/agent-requests/codex-websocket.jsonl')).text()
  let previous: unknown
  const sent: unknown[] = []
  for (const line of recorded.trim().split('\n')) {
    const frame = parseObject(line) ?? {}
    if (frame.previous_response_id !== undefined) frame.previous_response_id = previous
    socket.send(JSON.stringify(frame))
    if (Array.isArray(frame.input)) sent.push(...frame.input)
    let last = parseObject((await socket.frames(1))[0] ?? '')
    while (last?.type !== 'response.completed') last = parseObject((await socket.frames(1))[0] ?? '')
    previous = isObject(last.response) ? last.response.id : null
    const item = items[upstream.calls.length - 1]
    if (upstream.calls.length > 0 && item !== undefined) sent.push(item)
  }
  socket.close()
  expect(upstream.calls).toHaveLength(3)
  const [, , third] = upstream.calls.map(({ body }) => parseObject(body.toString()))
  expect(third).not.toContainKey('previous_response_id')
  expect(third?.input).toEqual(sent.slice(0, -1))
  expect(upstream.calls[0]?.headers['openai-beta']).toBeUndefined()
  await upstream.close()
})
