import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { openSocket, type TestSocket } from '../../src/gateway/testing/socket.ts'
import { chatStream } from '../fakes/chat.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { errorAnswer, eventPage, revokedToken } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const address = () => `${gatehouse.gatewayUrl.replace('http', 'ws')}/v1/chat/completions/ws`
const connect = (token: string, headers: Record<string, string> = {}): Promise<TestSocket> =>
  openSocket(address(), { authorization: `Bearer ${token}`, ...headers })
const question = (members: object = {}) =>
  JSON.stringify({
    model: 'fake-model',
    messages: [{ role: 'user', content: 'hello' }],
    // Without it the frame that tells the usage is the gateway's own and not passed on.
    stream_options: { include_usage: true },
    ...members,
  })

/** The data of each event of a stream, as a plain reading of the format gives it. */
const dataOf = (stream: Buffer): string[] =>
  stream
    .toString()
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))

describe('a WebSocket', () => {
  test('passes the provider’s events byte for byte at every split, one frame each', async () => {
    const token = await createToken(gatehouse)
    const socket = await connect(token.token_value, { 'x-request-id': 'handshake-7' })
    const body = chatStream({ lineEnding: '\r\n' })
    const plans = Object.values(splitPlans)
    for (const split of plans) {
      upstream.next({ ...streamReply(body), split })
      socket.send(question())
      expect(await socket.frames(dataOf(body).length)).toEqual(dataOf(body))
    }
    socket.close()
    const ids = plans.map((_, index) => `handshake-7.${index + 1}`)
    await until('all are recorded', async () => {
      const page = expectAnswer(await api(gatehouse, '/v1/events?since=5m'), 200, eventPage)
      const outcomes = page.events.filter(({ event_type }) => event_type === 'gateway.request.outcome')
      return ids.every((id) => outcomes.filter(({ request_id }) => request_id === id).length === 1)
    })
  })

  test('works with Bun’s own client', async () => {
    const token = await createToken(gatehouse)
    const socket = new WebSocket(address(), { headers: { authorization: `Bearer ${token.token_value}` } })
    const frames: string[] = []
    const done = Promise.withResolvers<void>()
    socket.addEventListener('open', () => socket.send(question()))
    socket.addEventListener('message', ({ data }) => {
      frames.push(String(data))
      if (data === '[DONE]') done.resolve()
    })
    await done.promise
    socket.close()
    expect(frames).toEqual(dataOf(chatStream()))
  })

  test('aborts the provider call when it is closed within an answer', async () => {
    upstream.forget()
    const token = await createToken(gatehouse)
    const socket = await connect(token.token_value)
    upstream.next({
      ...streamReply(),
      split: splitPlans['at every frame'] ?? (() => []),
      stop: { after: 2, by: 'stall' },
    })
    socket.send(question())
    await socket.frames(1)
    socket.close()
    await until('the call is cancelled', () => upstream.calls.at(-1)?.state === 'cancelled after headers')
  })

  test('is refused before it opens without a valid token, and its frames are refused once the token is revoked', async () => {
    const opening = (authorization?: string) =>
      fetch(address().replace('ws', 'http'), {
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
          ...(authorization !== undefined && { authorization }),
        },
      })
    for (const [authorization, code] of [
      [undefined, 'missing_api_key'],
      ['Bearer nonsense', 'invalid_api_token'],
    ] as const) {
      const refused = await opening(authorization)
      expect(refused.status).toBe(401)
      expect(errorAnswer.parse(await refused.json()).error.code).toBe(code)
    }
    const token = await createToken(gatehouse)
    const socket = await connect(token.token_value)
    expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
    socket.send(question())
    const frame = JSON.parse((await socket.frames(1))[0] ?? '')
    expect(frame).toMatchObject({ type: 'error', status: 401, error: { code: 'invalid_api_token' } })
    expect(frame.error.message).toContain(token.resource_vrn)
    expect((await socket.ended).code).toBe(1008)
  })
})

test('is ended by an emergency revocation that asks for it, for that token only', async () => {
  const [token, other] = [await createToken(gatehouse), await createToken(gatehouse)]
  const split = splitPlans['at every frame'] ?? (() => [])
  upstream.when('endless', { ...streamReply(), split, stop: { after: 2, by: 'stall' } })
  upstream.when('silent', { stop: { after: 'nothing', by: 'stall' } })
  upstream.forget()
  const ask = (secret: string, model: string, stream: boolean) =>
    chat(gatehouse, { token: secret, model, stream }).then(async (answer) => ({
      status: answer.status,
      text: await answer.text(),
    }))
  const [streamed, whole] = [ask(token.token_value, 'endless', true), ask(token.token_value, 'silent', false)]
  const untouched = chat(gatehouse, { token: other.token_value, model: 'endless', stream: true })
  const [busy, idle] = [await connect(token.token_value), await connect(token.token_value)]
  busy.send(question({ model: 'endless' }))
  await busy.frames(1)
  await until('all four are with the provider', () => upstream.calls.length === 4)
  await (await untouched).body?.getReader().read()

  const revoked = await api(gatehouse, `/v1/tokens/${token.id}/emergency-revoke`, {
    body: { explanation: 'The laptop was stolen', revoke_active_sessions: true },
  })
  expectAnswer(revoked, 200, revokedToken)

  expect((await whole).status).toBe(401)
  expect(errorAnswer.parse(JSON.parse((await whole).text)).error).toMatchObject({ code: 'invalid_api_token' })
  expect((await streamed).text).toContain('"code":"invalid_api_token"')
  expect((await streamed).text).toEndWith('data: [DONE]\n\n')
  for (const socket of [busy, idle]) {
    expect((await socket.ended).code).toBe(1008)
    expect(JSON.parse((await socket.frames(1))[0] ?? '')).toMatchObject({ type: 'error', status: 401 })
  }
  await until('its calls are cancelled', () => upstream.running() === 1)
  await eventually(async () => {
    const page = expectAnswer(await api(gatehouse, '/v1/events?since=5m'), 200, eventPage)
    const cut = page.events.filter(({ event_type, reason_code }) => {
      return event_type === 'gateway.request.outcome' && reason_code === 'token.revoked'
    })
    expect(cut.map(({ event_attribution }) => event_attribution.token_id)).toEqual([token.id, token.id, token.id])
  })
})
