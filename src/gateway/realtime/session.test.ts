/** Realtime sessions: how they begin, what a response is recorded as, and how they end. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { answering, type RealtimeGateway, speechDetection, spoken, startRealtime } from '../testing/realtime.ts'

let running: RealtimeGateway

beforeEach(async () => {
  running = await startRealtime()
  running.script.on = answering((count) => spoken({ id: `resp_${count}` }))
})
afterEach(() => running.stop())

const outcomes = () => running.worker.journal.outcomes()
const sent = (type: string) => running.sessions[0]?.received.filter((event) => event.type === type) ?? []

describe('a session', () => {
  test('connects to the provider with its credential and shows its first event', async () => {
    const client = await running.connect('?model=gpt-realtime', { 'openai-organization': 'org' })
    expect(await client.next('session.created')).toMatchObject({ session: { type: 'realtime' } })
    const [session] = running.sessions
    expect(session?.headers.get('authorization')).toBe('Bearer sk-operator')
    expect(session?.headers.has('openai-organization')).toBe(false)
    expect(new URL(session?.url ?? '').pathname + new URL(session?.url ?? '').search).toBe(
      '/v1/realtime?model=gpt-realtime',
    )
    client.socket.close()
  })

  test('passes the events of a response on and records one outcome with its usage', async () => {
    const client = await running.connect()
    client.send({ type: 'response.create', event_id: 'mine', response: { instructions: 'Greet' } })
    const events = await client.until('response.done')
    const own = spoken().map(({ type }) => type)
    expect(events.map(({ type }) => type)).toEqual(['session.created', ...own])
    expect(sent('response.create')).toMatchObject([{ response: { instructions: 'Greet' } }])
    expect(outcomes()).toMatchObject([
      {
        reason_code: 'ok',
        details: { route: 'GET /v1/realtime', model: 'gpt-realtime', dispatched: true },
        event_cost_attribution: { input_tokens: 40, output_tokens: 20, estimated: false },
      },
    ])
    client.socket.close()
  })

  test('runs several responses one after the other, each with its own record', async () => {
    const client = await running.connect()
    for (let count = 0; count < 3; count++) {
      client.send({ type: 'response.create' })
      await client.next('response.done')
    }
    expect(outcomes()).toHaveLength(3)
    expect(running.worker.journal.opened.size).toBe(3)
    client.socket.close()
  })

  test('asks for the answers to turns of speech itself, and shows its client the setting that it chose', async () => {
    running.script.created = speechDetection
    const client = await running.connect()
    const detection = { audio: { input: { turn_detection: { create_response: true } } } }
    expect(await client.next('session.created')).toMatchObject({ session: detection })
    expect(sent('session.update')).toMatchObject([
      { session: { audio: { input: { turn_detection: { create_response: false } } } } },
    ])
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    await client.next('response.done')
    expect(sent('response.create')).toHaveLength(1)
    client.send({
      type: 'session.update',
      session: speechDetection,
    })
    expect(await client.next('session.updated')).toMatchObject({ session: detection })
    expect(sent('session.update')[1]).toMatchObject({
      session: { audio: { input: { turn_detection: { create_response: false } } } },
    })
    expect(outcomes()).toHaveLength(1)
    client.socket.close()
  })

  test('answers a turn of speech also behind a commit that the provider refused', async () => {
    running.script.created = speechDetection
    const answer = answering((count) => spoken({ id: `resp_${count}` }))
    running.script.on = (event, provider) => {
      if (event.type !== 'input_audio_buffer.commit') return answer(event, provider)
      const error = { type: 'invalid_request_error', code: 'input_audio_buffer_commit_empty', message: 'Empty' }
      provider.tell({ type: 'error', error: { ...error, event_id: event.event_id } })
    }
    const client = await running.connect()
    client.send({ type: 'input_audio_buffer.commit', event_id: 'mine' })
    expect(await client.next('error')).toMatchObject({ error: { event_id: 'mine' } })
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    await client.next('response.done')
    expect(sent('response.create')).toHaveLength(1)
    client.socket.close()
  })

  test('sends no member of an event on that policies do not read', async () => {
    const client = await running.connect()
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }
    client.send({
      type: 'conversation.item.create',
      event_id: 'mine',
      previous_item_id: 'root',
      item,
      instructions: 'x',
    })
    client.send({ type: 'session.update', session: { type: 'realtime' }, instructions: 'x' })
    await client.next('session.updated')
    const [created] = sent('conversation.item.create')
    expect(Object.keys(created ?? {}).toSorted()).toEqual(['event_id', 'item', 'previous_item_id', 'type'])
    expect(Object.keys(sent('session.update')[0] ?? {}).toSorted()).toEqual(['session', 'type'])
    client.socket.close()
  })

  test('is ended with 1008 within a second when its token is revoked', async () => {
    const client = await running.connect()
    await client.next('session.created')
    running.worker.revocations.add([...running.worker.tokens.keys()][0] ?? '')
    expect(await client.next('error')).toMatchObject({ error: { code: 'invalid_api_token' } })
    expect((await client.socket.ended).code).toBe(1008)
    await eventually(() => running.sessions[0]?.isOpen() === false)
  })

  test('is not opened when its token is revoked while its limit is asked for', async () => {
    const usageLimits = new InMemoryLimits({})
    const take = usageLimits.reserve.bind(usageLimits)
    usageLimits.reserve = async (...asked) => {
      for (const hash of running.worker.tokens.keys()) running.worker.revocations.add(hash)
      return await take(...asked)
    }
    Object.assign(running.worker, { usageLimits })
    const account = { id: 't', maxRequests: 5, maxBudget: null, rateLimitRpm: null, rateLimitTpm: null }
    const secret = running.worker.addToken({ keyClass: 'disposable', accounts: [account] })
    const refused = running.connect('?model=gpt-realtime', { authorization: `Bearer ${secret}` })
    expect(await refused.then(() => null, String)).toContain('401')
    expect(running.sessions.length).toBe(0)
  })

  test('records what its client leaves behind', async () => {
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    await client.next('response.output_audio_transcript.delta')
    client.socket.close()
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ reason_code: 'client.left', event_cost_attribution: { estimated: true } }])
  })
})
