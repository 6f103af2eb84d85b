/** The OpenAI SDK's own WebSocket client for responses, which dials `/v1/responses` itself. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { openSocket } from '../../src/gateway/testing/socket.ts'
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
