/** What realtime sessions reserve and settle of budgets. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { answering, type RealtimeGateway, speechDetection, spoken, startRealtime } from '../testing/realtime.ts'
import { testModel } from '../testing/worker.ts'

let running: RealtimeGateway
let limits: InMemoryLimits
let secret: string

/** Dollars a million tokens: text 4 and 16, audio 32 and 64. */
const rates = {
  input_per_million: 4,
  output_per_million: 16,
  audio_input_per_million: 32,
  audio_output_per_million: 64,
}
const price = compilePrice({ ...rates, cached_input_per_million: 0.4 }, 'operator')
/** 10 tokens of text and 30 of sound in, 5 and 15 out, in nano-dollars. */
const answerCost = 10 * 4000 + 30 * 32_000 + 5 * 16_000 + 15 * 64_000
const plenty = 10_000_000_000
/** The price table's window of the model, at the price of sound, and the most that it answers. */
const inputBound = 32_768 * 32_000
const bound = inputBound + 4096 * 64_000

beforeEach(async () => {
  running = await startRealtime()
  running.script.on = answering((count) => spoken({ id: `resp_${count}` }))
  running.worker.catalog.push(testModel({ id: 'gpt-realtime', price, maxOutputTokens: 4096 }))
  limit(plenty)
  const accounts = [{ id: 't', maxRequests: 9, maxBudget: plenty, rateLimitRpm: null, rateLimitTpm: null }]
  secret = running.worker.addToken({ accounts })
})
afterEach(() => running.stop())

const limit = (money: number, requests = 9) => {
  limits = new InMemoryLimits({ 'token/t/money': money, 'token/t/requests': requests })
  Object.assign(running.worker, { usageLimits: limits })
}
const connect = () => running.connect('?model=gpt-realtime', { authorization: `Bearer ${secret}` })
const money = () => limits.balances.get('token/t/money') ?? 0
const sent = (type: string) => running.sessions[0]?.received.filter((event) => event.type === type) ?? []
const outcomes = () => running.worker.journal.outcomes()

describe('a response', () => {
  test('is booked at the price of its text and its sound to the nano-dollar', async () => {
    const client = await connect()
    client.send({ type: 'response.create' })
    await client.next('response.done')
    expect(plenty - money()).toBe(answerCost)
    expect(outcomes()).toMatchObject([{ event_cost_attribution: { cost: answerCost / 1e9, estimated: false } }])
    client.socket.close()
  })

  test('has its worst case reserved while it runs: the window at the price of sound', async () => {
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await connect()
    client.send({ type: 'response.create' })
    await client.next('response.output_audio.delta')
    expect(plenty - money()).toBe(bound)
    client.socket.close()
    await eventually(() => outcomes().length === 1)
    expect(limits.settled).toBe(1)
  })

  test('is lowered to what the budget pays for', async () => {
    limit(inputBound + 100 * 64_000)
    const client = await connect()
    client.send({ type: 'response.create' })
    await client.next('response.done')
    expect(sent('response.create')).toMatchObject([{ response: { max_output_tokens: 100 } }])
    client.socket.close()
  })

  test('is refused before it runs when the budget does not pay for it, and the session goes on', async () => {
    limit(1000)
    const client = await connect()
    client.send({ type: 'response.create', event_id: 'mine' })
    expect(await client.next('error')).toMatchObject({
      error: { code: 'usage_authorization_budget_exceeded', event_id: 'mine' },
    })
    expect(sent('response.create')).toEqual([])
    limit(plenty)
    client.send({ type: 'response.create' })
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } })
    client.socket.close()
  })

  test('to a turn of speech is refused like every other', async () => {
    running.script.created = speechDetection
    limit(1000)
    const client = await connect()
    await client.next('session.created')
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    expect(await client.next('error')).toMatchObject({ error: { code: 'usage_authorization_budget_exceeded' } })
    expect(sent('response.create')).toEqual([])
    client.socket.close()
  })

  test('that a killed gateway left open is settled by recovery at its whole reservation', async () => {
    running.script.on = answering(() => spoken().slice(0, 6))
    const client = await connect()
    client.send({ type: 'response.create' })
    await client.next('response.output_audio.delta')
    const [interrupted] = running.worker.journal.opened.values()
    expect(interrupted).toMatchObject({
      reason_code: 'gateway.interrupted',
      details: { route: 'GET /v1/realtime', dispatched: true },
      settlements: [
        { account: 'token/t/requests', amount: 1 },
        { account: 'token/t/money', amount: bound },
      ],
    })
    client.socket.close()
  })
})

describe('a transcript', () => {
  const transcribed = {
    type: 'realtime',
    audio: { input: { turn_detection: null, transcription: { model: 'gpt-4o-transcribe' } } },
  }
  const place = {
    type: 'conversation.item.input_audio_transcription.completed',
    item_id: 'item_heard',
    content_index: 0,
  }
  const usage = { type: 'tokens', input_tokens: 20, output_tokens: 7, input_token_details: { audio_tokens: 20 } }
  /** Two seconds of PCM. */
  const audio = Buffer.alloc(96_000, 1).toString('base64')

  const speak = async () => {
    running.script.created = transcribed
    const client = await connect()
    await client.next('session.created')
    client.send({ type: 'input_audio_buffer.append', audio })
    client.send({ type: 'input_audio_buffer.commit' })
    await eventually(() => sent('input_audio_buffer.commit').length === 1)
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    return client
  }

  beforeEach(() => {
    const price = compilePrice({ input_per_million: 1, output_per_million: 5, audio_input_per_million: 3 }, 'operator')
    running.worker.catalog.push(testModel({ id: 'gpt-4o-transcribe', price, maxOutputTokens: 2000 }))
  })

  test('is settled by its own usage, as a request of its own', async () => {
    const client = await speak()
    await eventually(() => money() < plenty)
    running.sessions[0]?.tell({ ...place, transcript: 'hello there', usage })
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([
      {
        details: { model: 'gpt-4o-transcribe' },
        event_cost_attribution: { input_tokens: 20, output_tokens: 7, estimated: false },
      },
    ])
    expect(plenty - money()).toBe(20 * 3000 + 7 * 5000)
    client.socket.close()
  })

  test('is charged by the length of the sound when the client leaves before it is there', async () => {
    const client = await speak()
    await eventually(() => money() < plenty)
    client.socket.close()
    await eventually(() => outcomes().length === 1)
    expect(outcomes()).toMatchObject([{ event_cost_attribution: { input_tokens: 20, estimated: true } }])
  })

  test('that the budget does not pay for ends the session', async () => {
    limit(10)
    const client = await speak()
    expect(await client.next('error')).toMatchObject({ error: { code: 'usage_authorization_budget_exceeded' } })
    expect((await client.socket.ended).code).toBe(1008)
  })

  test('by a model that the token may not use is refused when it is asked for', async () => {
    secret = running.worker.addToken({ modelFilter: ['gpt-realtime'] })
    const client = await connect()
    client.send({
      type: 'session.update',
      session: { audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } } },
    })
    expect(await client.next('error')).toMatchObject({ error: { code: 'tokens.model_not_allowed' } })
    expect(sent('session.update')).toEqual([])
    client.socket.close()
  })
})
