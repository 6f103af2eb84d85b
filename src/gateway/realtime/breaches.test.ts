/** Providers and clients that break the rules of a realtime session, and its bounds. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { policy } from '../testing/policies.ts'
import { answering, type RealtimeClient, type RealtimeGateway, spoken, startRealtime } from '../testing/realtime.ts'

let running: RealtimeGateway

const start = async (settings: Parameters<typeof startRealtime>[0] = {}) => {
  await running?.stop()
  running = await startRealtime(settings)
  running.script.on = answering((count) => spoken({ id: `resp_${count}` }))
}
beforeEach(() => start())
afterEach(() => running.stop())

const outcomes = () => running.worker.journal.outcomes()
const ask = async (client: RealtimeClient) => {
  client.send({ type: 'response.create' })
  return await client.until('response.done')
}

describe('a provider', () => {
  test('that refuses the session is reported with its status, and the handshake recorded', async () => {
    running.script.refuse = () => new Response('no', { status: 403 })
    const client = await running.connect()
    const error = await client.next('error')
    expect(error).toMatchObject({
      error: { code: 'provider_primary_path_error', message: 'The provider refused the session with status 403' },
    })
    expect((await client.socket.ended).code).toBe(1011)
    expect(outcomes()).toMatchObject([{ reason_code: 'provider_primary_path_error' }])
    expect(running.worker.journal.opened.size).toBe(0)
  })

  test('that says nothing is given up after the time of a connection', async () => {
    await start({ connect_timeout_seconds: 1 })
    running.script.created = null
    const client = await running.connect()
    expect(await client.next('error')).toMatchObject({ error: { code: 'provider_primary_path_error' } })
    expect((await client.socket.ended).code).toBe(1011)
  })

  test('that never begins a response ends it after the time of a first byte, and the session with it', async () => {
    await start({ first_byte_timeout_seconds: 1 })
    running.script.on = () => undefined
    const client = await running.connect()
    client.send({ type: 'response.create' })
    expect((await client.until('error')).length).toBeGreaterThan(0)
    expect((await client.socket.ended).code).toBe(1011)
    expect(outcomes()).toMatchObject([{ reason_code: 'provider.timeout' }])
  })

  test('that takes sound into the same item twice ends the session', async () => {
    const client = await running.connect()
    await client.next('session.created')
    const committed = { type: 'input_audio_buffer.committed', item_id: 'item_heard' }
    for (const _ of [1, 2]) running.sessions[0]?.tell(committed)
    expect(await client.next('error')).toMatchObject({ error: { code: 'upstream_provider_error' } })
    expect((await client.socket.ended).code).toBe(1011)
  })

  test('that is silent within a response has it ended with an error and a failed response', async () => {
    await start({ idle_timeout_seconds: 1 })
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await running.connect()
    const events = await ask(client)
    expect(events.at(-1)).toMatchObject({ response: { id: 'resp_1', status: 'failed' } })
    expect(outcomes()).toMatchObject([{ reason_code: 'provider.timeout' }])
    await eventually(() => running.sessions[0]?.received.some(({ type }) => type === 'response.cancel') === true)
    client.socket.close()
  })

  test('that closes in the middle of a response leaves one outcome and closes with 1011', async () => {
    running.script.on = (event, session) => {
      if (event.type !== 'response.create') return
      for (const each of spoken().slice(0, 6)) session.tell(each)
      session.close(1000)
    }
    const client = await running.connect()
    const events = await ask(client)
    expect(events.at(-1)).toMatchObject({ response: { status: 'failed' } })
    expect((await client.socket.ended).code).toBe(1011)
    expect(outcomes()).toMatchObject([
      { reason_code: 'provider.interrupted', event_cost_attribution: { estimated: true } },
    ])
  })

  test('that reports no usage is charged by estimate, with the sound it sent', async () => {
    running.script.on = answering(() => spoken({ usage: null, sound: 'A'.repeat(64_000) }))
    const client = await running.connect()
    await ask(client)
    const [{ event_cost_attribution: cost } = {}] = outcomes()
    // Two seconds of sound at 20 tokens each, and 12 characters.
    expect(cost).toMatchObject({ estimated: true, output_tokens: 43 })
    client.socket.close()
  })

  test('that refuses a response ends that response only', async () => {
    running.script.on = (event, session) => {
      if (event.type !== 'response.create') return
      const error = { type: 'invalid_request_error', code: 'conversation_already_has_active_response' }
      session.tell({ type: 'error', error: { ...error, message: 'Busy', event_id: event.event_id } })
    }
    const client = await running.connect()
    client.send({ type: 'response.create', event_id: 'mine' })
    expect(await client.next('error')).toMatchObject({
      error: { code: 'conversation_already_has_active_response', event_id: 'mine' },
    })
    expect(outcomes()).toMatchObject([{ reason_code: 'provider.error', details: { attempts: 1 } }])
    running.script.on = answering(() => spoken({ id: 'resp_later' }))
    expect((await ask(client)).at(-1)).toMatchObject({ response: { status: 'completed' } })
    client.socket.close()
  })

  const breaches: Record<string, readonly (object | string | Uint8Array)[]> = {
    'begins a response that nobody asked for': [{ type: 'response.created', response: { id: 'resp_x' } }],
    'sends events of a response that nobody asked for': [
      { type: 'response.output_text.delta', response_id: 'resp_x', delta: 'x' },
    ],
    'sends what is no event': ['[1,2]'],
    'sends what is no JSON': ['hello'],
    'sends a binary frame': [new Uint8Array([1])],
    'sends an event over the limit': [{ type: 'rate_limits.updated', filler: 'x'.repeat(5 * 1024 * 1024) }],
  }
  for (const [what, events] of Object.entries(breaches)) {
    test(`that ${what} has the session ended with 1011`, async () => {
      const client = await running.connect()
      await client.next('session.created')
      for (const event of events) running.sessions[0]?.tell(event)
      expect(await client.next('error')).toMatchObject({ error: { code: 'upstream_provider_error' } })
      expect((await client.socket.ended).code).toBe(1011)
    })
  }

  test('that claims an id twice has the session ended, and both responses one outcome each', async () => {
    running.script.on = answering(() => spoken())
    const client = await running.connect()
    await ask(client)
    client.send({ type: 'response.create' })
    await client.next('error')
    expect((await client.socket.ended).code).toBe(1011)
    await eventually(() => outcomes().length === 2)
    expect(
      outcomes()
        .map(({ reason_code }) => reason_code)
        .toSorted(),
    ).toEqual(['ok', 'provider.unreachable'])
  })

  test('that sends unknown events has them passed on, and dropped while policies inspect answers', async () => {
    const unknown = { type: 'surprise.event', text: 'forbidden' }
    const client = await running.connect()
    await client.next('session.created')
    running.sessions[0]?.tell(unknown)
    expect(await client.next('surprise.event')).toEqual(unknown)
    running.worker.policies = compilePolicySet([
      policy({
        id: 'p',
        kind: 'term-filter',
        config: { terms: ['forbidden'], action: 'block' },
        stages: ['pre_response'],
      }),
    ])
    running.sessions[0]?.tell(unknown)
    expect((await ask(client)).some(({ type }) => type === 'surprise.event')).toBe(false)
    client.socket.close()
  })

  test('that floods a client who does not read is paused, and nothing piles up here', async () => {
    await start({ realtime_buffer_bytes: 64 * 1024 })
    const client = await running.connect()
    await client.next('session.created')
    client.socket.pause()
    const provider = running.sessions[0]
    const filler = 'x'.repeat(100_000)
    for (let count = 0; count < 600; count++) provider?.tell({ type: 'rate_limits.updated', count, filler })
    let waiting = -1
    while (waiting !== provider?.waiting()) {
      waiting = provider?.waiting() ?? 0
      await Bun.sleep(200)
    }
    // Of 60 MB the most waits at the provider; the rest stands in the buffers of four sockets.
    expect(waiting).toBeGreaterThan(20_000_000)
    client.socket.resume()
    for (let count = 0; count < 600; count++) expect(await client.next('rate_limits.updated')).toMatchObject({ count })
    client.socket.close()
  })
})

describe('a client', () => {
  const endings: Record<string, [frame: string | Uint8Array, code: number]> = {
    'sends a binary frame': [new Uint8Array([1, 2]), 1003],
    'sends what is no JSON object': ['[1]', 1007],
    'sends an event over the limit': [JSON.stringify({ type: 'x', filler: 'x'.repeat(5 * 1024 * 1024) }), 1009],
  }
  for (const [what, [frame, code]] of Object.entries(endings)) {
    test(`that ${what} is closed with ${code}`, async () => {
      const client = await running.connect()
      await client.next('session.created')
      client.socket.send(frame)
      expect((await client.socket.ended).code).toBe(code)
    })
  }

  test('that breaks the rules while a response runs is closed without delay, and the response recorded', async () => {
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    await client.next('response.output_audio.delta')
    client.socket.send('[1]')
    expect((await client.socket.ended).code).toBe(1007)
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ reason_code: 'client.left' }])
  })

  test('that reads nothing is let go when the session has its greatest length', async () => {
    await start({ realtime_session_seconds: 1, realtime_buffer_bytes: 4096 })
    running.script.on = answering(() => [
      ...spoken({ sound: 'A'.repeat(1000_000) }).slice(0, 5),
      ...Array.from({ length: 40 }, () => spoken({ sound: 'A'.repeat(1000_000) })[5] ?? {}),
    ])
    const client = await running.connect()
    client.send({ type: 'response.create' })
    await client.next('response.created')
    client.socket.pause()
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ reason_code: 'realtime_session_ended' }])
    await eventually(() => running.sessions[0]?.isOpen() === false)
    client.socket.resume()
    await client.socket.ended
  })

  test('that sends too many events a second is closed with 1008', async () => {
    await start({ realtime_events_per_second: 20 })
    const client = await running.connect()
    for (let count = 0; count < 40; count++) client.send({ type: 'input_audio_buffer.clear' })
    expect(await client.next('error')).toMatchObject({ error: { code: 'realtime_rate_exceeded' } })
    expect((await client.socket.ended).code).toBe(1008)
  })

  test('that is idle is closed with 1000', async () => {
    await start({ realtime_idle_seconds: 1 })
    const client = await running.connect()
    expect(await client.next('error')).toMatchObject({ error: { code: 'realtime_session_ended' } })
    expect((await client.socket.ended).code).toBe(1000)
  })

  test('whose session has its greatest length is closed, and its running response cut', async () => {
    await start({ realtime_session_seconds: 1 })
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    expect((await client.until('response.done')).at(-1)).toMatchObject({ response: { status: 'failed' } })
    expect((await client.socket.ended).code).toBe(1000)
    expect(outcomes()).toMatchObject([{ reason_code: 'realtime_session_ended' }])
  })

  test('hears 1001 from a gateway that stops, behind the response that runs', async () => {
    const gate = Promise.withResolvers<void>()
    running.script.on = async (event, session) => {
      if (event.type !== 'response.create') return
      for (const each of spoken().slice(0, 6)) session.tell(each)
      await gate.promise
      for (const each of spoken().slice(6)) session.tell(each)
    }
    const client = await running.connect()
    client.send({ type: 'response.create' })
    await client.next('response.output_audio.delta')
    const drained = running.gateway.drain()
    gate.resolve()
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } })
    expect((await client.socket.ended).code).toBe(1001)
    await drained
  })

  const refused: Record<string, object> = {
    type: { type: 'surprise' },
    'session.type': { type: 'session.update', session: { type: 'transcription' } },
    'session.model': { type: 'session.update', session: { model: 'other' } },
    'session.tools[0]': { type: 'session.update', session: { tools: [{ type: 'mcp', server_url: 'https://x' }] } },
    'response.tools[0]': { type: 'response.create', response: { tools: [{ type: 'mcp' }] } },
    'session.audio.input.turn_detection.idle_timeout_ms': {
      type: 'session.update',
      session: { audio: { input: { turn_detection: { type: 'server_vad', idle_timeout_ms: 5000 } } } },
    },
  }
  for (const [param, event] of Object.entries(refused)) {
    test(`has ${param} refused, and the session goes on`, async () => {
      const client = await running.connect()
      client.send({ event_id: 'mine', ...event })
      expect(await client.next('error')).toMatchObject({
        error: { code: 'invalid_parameter', param, event_id: 'mine' },
      })
      expect((await ask(client)).at(-1)).toMatchObject({ response: { status: 'completed' } })
      client.socket.close()
    })
  }
})

describe('a handshake', () => {
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(running.url + path, {
      method,
      headers: {
        authorization: `Bearer ${running.secret}`,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        ...headers,
      },
    })
  const cases: [path: string, headers: Record<string, string>, status: number, code: string][] = [
    ['/v1/realtime', {}, 422, 'invalid_parameter'],
    ['/v1/realtime?model=a&model=b', {}, 422, 'invalid_parameter'],
    ['/v1/realtime?call_id=rtc_1', {}, 422, 'invalid_parameter'],
    ['/v1/realtime?intent=transcription', {}, 422, 'invalid_parameter'],
    ['/v1/realtime?model=m', { 'openai-beta': 'realtime=v1' }, 400, 'bad_request'],
    ['/v1/realtime?model=m', { authorization: 'Bearer nonsense' }, 401, 'invalid_api_token'],
  ]
  for (const [path, headers, status, code] of cases) {
    test(`to ${path} with ${Object.keys(headers)} is refused with ${status} and recorded`, async () => {
      const answer = await get(path, headers)
      expect([answer.status, await answer.json()]).toMatchObject([status, { error: { code } }])
      expect(outcomes()).toMatchObject([{ reason_code: code }])
    })
  }

  test('is refused for a model that the token may not use', async () => {
    const secret = running.worker.addToken({ modelFilter: ['other'] })
    const answer = await get('/v1/realtime?model=gpt-realtime', { authorization: `Bearer ${secret}` })
    expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 'tokens.model_not_allowed' } }])
  })

  test('is refused when as many sessions run as there may be', async () => {
    await start({ realtime_sessions: 1 })
    const client = await running.connect()
    expect((await get('/v1/realtime?model=m')).status).toBe(503)
    client.socket.close()
    await eventually(async () => (await get('/v1/realtime')).status === 422)
    await eventually(async () => {
      const again = await running.connect().catch(() => null)
      again?.socket.close()
      return again !== null
    })
  })

  test('takes the token from the subprotocol that browsers send', async () => {
    const { authorization: _, ...without } = { authorization: '' }
    const socket = new WebSocket(`${running.url.replace('http', 'ws')}/v1/realtime?model=gpt-realtime`, [
      'realtime',
      `openai-insecure-api-key.${running.secret}`,
    ])
    const opened = Promise.withResolvers<string>()
    socket.onopen = () => opened.resolve(socket.protocol)
    socket.onerror = () => opened.reject(new Error('refused'))
    expect([await opened.promise, without]).toEqual(['realtime', {}])
    socket.close()
  })

  for (const path of ['client_secrets', 'sessions', 'transcription_sessions', 'calls', 'calls/rtc_1/accept']) {
    test(`of another kind, POST /v1/realtime/${path}, is refused with the reason`, async () => {
      const answer = await get(`/v1/realtime/${path}`, { upgrade: '', connection: '' }, 'POST')
      expect([answer.status, await answer.json()]).toMatchObject([501, { error: { code: 'realtime_secret_refused' } }])
    })
  }
})
