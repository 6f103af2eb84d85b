/** The official client of OpenAI, which dials by TLS alone, talks to the simulator through the gateway. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import { authority, certificate, key } from '../../lib/testing/certificate.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { policy } from '../testing/policies.ts'
import { type RealtimeGateway, startRealtime } from '../testing/realtime.ts'
import { testProvider } from '../testing/worker.ts'
import type { SocketHolder } from '../websocket/handshake.ts'

let running: RealtimeGateway
let server: Bun.Server<SocketHolder>

beforeEach(async () => {
  running = await startRealtime()
  const { gateway } = running
  server = Bun.serve({
    port: 0,
    development: false,
    tls: { cert: certificate, key },
    fetch: (request, self) => gateway.fetch(request, self),
    websocket: gateway.websocket,
  })
  running.worker.upstreams.length = 0
  running.worker.upstreams.push(testProvider({ id: 'simulator', name: 'simulator', kind: 'simulator', baseUrl: null }))
})
afterEach(async () => {
  await server.stop(true)
  await running.stop()
})

const api = () => new OpenAI({ apiKey: running.secret, baseURL: `https://localhost:${server.port}/v1`, maxRetries: 0 })
const open = (model = 'simulator/echo') => new OpenAIRealtimeWS({ model, options: { ca: authority } }, api())

/** All events up to one of this type. */
function until(client: OpenAIRealtimeWS, type: RealtimeServerEvent['type']): Promise<RealtimeServerEvent[]> {
  const { promise, resolve, reject } = Promise.withResolvers<RealtimeServerEvent[]>()
  const events: RealtimeServerEvent[] = []
  client.on('event', (event) => {
    events.push(event)
    if (event.type === type) resolve(events)
  })
  client.on('error', (error) => (type === 'error' ? resolve(events) : reject(error)))
  return promise
}

describe('the official client', () => {
  const sound = Buffer.alloc(9600, 7).toString('base64')
  const silence = Buffer.alloc(9600).toString('base64')

  test('writes and is answered by speech with a transcript', async () => {
    const client = open()
    await until(client, 'session.created')
    const content = [{ type: 'input_text' as const, text: 'Good morning to you' }]
    client.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
    client.send({ type: 'response.create' })
    const events = await until(client, 'response.done')
    const transcript = events.map((event) =>
      event.type === 'response.output_audio_transcript.delta' ? event.delta : '',
    )
    expect(transcript.join('')).toBe('Good morning to you')
    expect(events.some(({ type }) => type === 'conversation.item.done')).toBe(true)
    expect(events.filter(({ type }) => type === 'response.output_audio.delta')).toHaveLength(4)
    const last = events.at(-1)
    expect(last?.type === 'response.done' && last.response.usage?.output_tokens).toBe(8)
    client.close()
  })

  test('speaks, and is answered when it falls silent', async () => {
    const client = open()
    await until(client, 'session.created')
    client.send({
      type: 'session.update',
      session: { type: 'realtime', audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } } },
    })
    const updated = (await until(client, 'session.updated')).at(-1)
    expect(updated).toMatchObject({ session: { audio: { input: { turn_detection: { create_response: true } } } } })
    client.send({ type: 'input_audio_buffer.append', audio: sound })
    client.send({ type: 'input_audio_buffer.append', audio: silence })
    const events = await until(client, 'response.done')
    expect(events.map(({ type }) => type)).toContain('conversation.item.input_audio_transcription.completed')
    expect(events.at(-1)).toMatchObject({
      response: { output: [{ content: [{ transcript: 'Simulated transcript of 200 milliseconds.' }] }] },
    })
    client.close()
  })

  test('cancels a response, which is settled by its usage', async () => {
    const client = open('simulator/lorem')
    await until(client, 'session.created')
    client.send({ type: 'session.update', session: { type: 'realtime', max_output_tokens: 4000 } })
    client.send({ type: 'response.create' })
    await until(client, 'response.output_audio_transcript.delta')
    client.send({ type: 'response.cancel' })
    expect((await until(client, 'response.done')).at(-1)).toMatchObject({ response: { status: 'cancelled' } })
    expect(running.worker.journal.outcomes()).toMatchObject([
      { reason_code: 'ok', event_cost_attribution: { estimated: false } },
    ])
    client.close()
  })

  test('asks for text, with instructions of the response', async () => {
    const client = open()
    await until(client, 'session.created')
    client.send({
      type: 'response.create',
      response: {
        conversation: 'none',
        output_modalities: ['text'],
        input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'one two' }] }],
      },
    })
    const events = await until(client, 'response.done')
    expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(
      'one two',
    )
    client.close()
  })

  test('hears of a block as an error, and goes on', async () => {
    const block = { terms: ['forbidden'], action: 'block' }
    running.worker.policies = compilePolicySet([policy({ id: 'p', kind: 'term-filter', config: block })])
    const client = open()
    await until(client, 'session.created')
    const refused = until(client, 'error')
    const say = (text: string) =>
      client.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
      })
    say('a forbidden word')
    expect((await refused).at(-1)).toMatchObject({ error: { code: 'content_policy_violation' } })
    client.close()
    const again = open()
    await until(again, 'session.created')
    again.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a friendly word' }] },
    })
    again.send({ type: 'response.create' })
    expect((await until(again, 'response.done')).at(-1)).toMatchObject({ response: { status: 'completed' } })
    again.close()
  })

  test('cannot make a client secret, and is told why', async () => {
    const client = new OpenAI({ apiKey: running.secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
    const refusal = await client.realtime.clientSecrets
      .create({ session: { type: 'realtime' } })
      .catch((error) => error)
    expect(refusal).toMatchObject({ status: 501, code: 'realtime_secret_refused' })
  })
})
