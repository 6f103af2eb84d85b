/** Every family of the simulator through the official clients, streams and their helpers included. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { embed, generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { startTestGateway, type TestGateway } from './testing/gateway.ts'
import { testModel, testProvider } from './testing/worker.ts'

const echo = 'simulator/echo'
let running: TestGateway
let openai: OpenAI
let anthropic: Anthropic

beforeAll(async () => {
  running = await startTestGateway(() => new Response('not asked', { status: 500 }), { drain_seconds: 0 })
  const simulator = testProvider({ id: 'sim', kind: 'simulator', allowUnlistedModels: false })
  running.worker.upstreams.splice(0, 1, simulator)
  for (const id of [echo, 'simulator/lorem']) running.worker.catalog.push(testModel({ id, providerId: 'sim' }))
  openai = new OpenAI({ apiKey: running.secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
  anthropic = new Anthropic({ apiKey: running.secret, baseURL: running.url, maxRetries: 0 })
})
afterAll(async () => {
  await running.stop()
})

const hello = [{ role: 'user' as const, content: 'Good morning to you' }]
const wave = () => new File([new Uint8Array(3200)], 'speech.wav', { type: 'audio/wav' })

describe('the official OpenAI client', () => {
  test('reads whole and streamed chat completions', async () => {
    const whole = await openai.chat.completions.create({ model: echo, messages: hello })
    expect(whole.choices[0]?.message.content).toBe('Good morning to you')
    const streamed = await openai.chat.completions.stream({ model: echo, messages: hello }).finalChatCompletion()
    expect(streamed.choices[0]?.message.content).toBe('Good morning to you')
    expect(streamed.usage ?? null).toBeNull()
  })

  test('reads whole and streamed responses', async () => {
    const whole = await openai.responses.create({ model: echo, input: 'Good morning to you' })
    expect(whole.output_text).toBe('Good morning to you')
    expect(whole.usage?.total_tokens).toBe(8)
    const streamed = await openai.responses.stream({ model: echo, input: hello }).finalResponse()
    expect([streamed.status, streamed.output_text]).toEqual(['completed', 'Good morning to you'])
    const cut = await openai.responses.create({ model: 'simulator/lorem', input: 'x', max_output_tokens: 3 })
    expect([cut.status, cut.output_text]).toEqual(['incomplete', 'Lorem ipsum dolor'])
  })

  test('reads embeddings as numbers and as base64, close together for similar texts', async () => {
    const input = ['a cat sat down', 'a cat sat up', 'entirely other words here']
    const { data, usage } = await openai.embeddings.create({ model: echo, input, dimensions: 512 })
    expect(data.map(({ embedding }) => embedding.length)).toEqual([512, 512, 512])
    expect(usage.prompt_tokens).toBe(12)
    const [one = [], two = [], three = []] = data.map(({ embedding }) => embedding)
    const near = (a: number[], b: number[]) => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0)
    expect(near(one, one)).toBeCloseTo(1, 4)
    expect(near(one, two)).toBeGreaterThan(near(one, three))
    const floats = await openai.embeddings.create({ model: echo, input: [[1, 2, 3]], encoding_format: 'float' })
    expect(floats.data[0]?.embedding.length).toBe(256)
  })

  test('reads a transcript in every format and as a stream', async () => {
    const transcript = 'Simulated transcript of speech.wav, 3200 bytes.'
    const ask = { model: echo, file: wave() }
    expect((await openai.audio.transcriptions.create(ask)).text).toBe(transcript)
    const verbose = await openai.audio.transcriptions.create({ ...ask, response_format: 'verbose_json' })
    expect(verbose).toMatchObject({ text: transcript, duration: 1 })
    for (const format of ['text', 'srt', 'vtt'] as const) {
      const plain: string = await openai.audio.transcriptions.create({ ...ask, response_format: format })
      expect(plain).toContain(transcript)
    }
    let text = ''
    let done = ''
    for await (const event of await openai.audio.transcriptions.create({ ...ask, stream: true })) {
      if (event.type === 'transcript.text.delta') text += event.delta
      if (event.type === 'transcript.text.done') done = event.text
    }
    expect([text, done]).toEqual([transcript, transcript])
  })

  test('reads a translation of speech as JSON and as text', async () => {
    const translation = 'Simulated transcript of speech.wav, 3200 bytes.'
    expect((await openai.audio.translations.create({ model: echo, file: wave() })).text).toBe(translation)
    const subtitles: unknown = await openai.audio.translations.create({
      model: echo,
      file: wave(),
      response_format: 'srt',
    })
    expect(String(subtitles)).toContain(translation)
  })

  test('reads generated and edited images, whole and streamed', async () => {
    const whole = await openai.images.generate({ model: echo, prompt: 'a red circle', n: 2 })
    expect(
      whole.data?.map(({ b64_json: image }) => Buffer.from(image ?? '', 'base64').toString('latin1', 1, 4)),
    ).toEqual(['PNG', 'PNG'])
    expect(whole.usage).toMatchObject({ input_tokens: 3, output_tokens: 32 })
    const image = [new File(['one'], 'a.png', { type: 'image/png' }), new File(['two'], 'b.png', { type: 'image/png' })]
    const mask = new File(['mask'], 'm.png', { type: 'image/png' })
    expect((await openai.images.edit({ model: echo, prompt: 'a blue circle', image, mask, n: 3 })).data?.length).toBe(3)
    const types: string[] = []
    for await (const event of await openai.images.generate({ model: echo, prompt: 'a dot', n: 2, stream: true })) {
      types.push(event.type)
    }
    for await (const event of await openai.images.edit({ model: echo, prompt: 'a dot', image: mask, stream: true })) {
      types.push(event.type)
    }
    const [partial, done] = ['image_generation.partial_image', 'image_generation.completed']
    expect(types).toEqual([partial, done, partial, done, 'image_edit.partial_image', 'image_edit.completed'])
  })

  test('reads the order of documents', async () => {
    const documents = ['dogs bark at night', { text: 'cats sleep by day' }, 'a boat']
    const answer: unknown = await openai.post('/rerank', {
      body: { model: echo, query: 'when do cats sleep', documents, top_n: 2 },
    })
    expect(answer).toMatchObject({ results: [{ index: 1, relevance_score: 0.5 }, { relevance_score: 0 }] })
  })

  test('reads speech as a playable file and as events', async () => {
    const ask = { model: echo, voice: 'alloy', input: 'three short words' }
    const spoken = await openai.audio.speech.create(ask)
    expect(spoken.headers.get('content-type')).toBe('audio/wav')
    const file = Buffer.from(await spoken.arrayBuffer())
    expect([file.toString('latin1', 0, 4), file.readUInt32LE(4)]).toEqual(['RIFF', file.length - 8])
    expect(file.includes('gatehouse-simulator')).toBe(true)
    const events = await (await openai.audio.speech.create({ ...ask, stream_format: 'sse' })).text()
    const parts = [...events.matchAll(/"audio":"([^"]+)"/g)].map(([, part = '']) => Buffer.from(part, 'base64'))
    expect(Buffer.concat(parts).equals(file)).toBe(true)
    expect(events).toContain('event: speech.audio.done')
  })

  test('reads whole and streamed legacy completions, and moderations', async () => {
    const whole = await openai.completions.create({ model: echo, prompt: ['one two', 'three'], n: 2 })
    expect(whole.choices.map(({ text }) => text)).toEqual(['one two', 'one two', 'three', 'three'])
    let text = ''
    for await (const chunk of await openai.completions.create({ model: echo, prompt: 'one two', stream: true })) {
      text += chunk.choices[0]?.text ?? ''
    }
    expect(text).toBe('one two')
    const moderation = await openai.moderations.create({ model: echo, input: ['a', 'b'] })
    expect(moderation.results.map(({ flagged }) => flagged)).toEqual([false, false])
  })

  test('lists the models and raises typed errors', async () => {
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual([echo, 'simulator/lorem'])
    expect((await openai.models.retrieve(echo)).id).toBe(echo)
    const unknown = openai.chat.completions.create({ model: 'simulator/none', messages: hello })
    expect(await unknown.catch((error: unknown) => error)).toBeInstanceOf(OpenAI.NotFoundError)
  })
})

describe('the official Anthropic client', () => {
  const ask = { model: echo, max_tokens: 100, messages: hello }

  test('reads whole and streamed messages', async () => {
    const whole = await anthropic.messages.create(ask)
    expect(whole).toMatchObject({ content: [{ type: 'text', text: 'Good morning to you' }], stop_reason: 'end_turn' })
    expect(whole._request_id).toBeTruthy()
    const streamed = await anthropic.messages.stream(ask).finalMessage()
    expect(streamed).toMatchObject({ content: [{ text: 'Good morning to you' }], usage: { output_tokens: 4 } })
    const cut = await anthropic.messages.create({ ...ask, model: 'simulator/lorem', max_tokens: 2 })
    expect(cut.stop_reason).toBe('max_tokens')
  })

  test('lists the models with either credential header', async () => {
    const byToken = new Anthropic({ authToken: running.secret, apiKey: null, baseURL: running.url })
    for (const client of [anthropic, byToken]) {
      const ids: string[] = []
      for await (const { id } of client.models.list()) ids.push(id)
      expect(ids).toEqual([echo, 'simulator/lorem'])
    }
  })

  test('raises typed errors with the request id', async () => {
    const stranger = new Anthropic({ apiKey: 'gth_nothing', baseURL: running.url, maxRetries: 0 })
    const refused = await stranger.messages.create(ask).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(Anthropic.AuthenticationError)
    expect(refused).toHaveProperty('requestID', expect.any(String))
  })
})

describe('the AI SDK', () => {
  test('generates and streams text by chat, responses and messages, and embeds', async () => {
    const provider = createOpenAI({ apiKey: running.secret, baseURL: `${running.url}/v1` })
    const messages = createAnthropic({ apiKey: running.secret, baseURL: `${running.url}/v1` })
    const prompt = 'Good morning to you'
    const maxOutputTokens = 100
    for (const model of [provider.chat(echo), provider.responses(echo), messages(echo)]) {
      expect((await generateText({ model, prompt, maxOutputTokens })).text).toBe(prompt)
      expect(await streamText({ model, prompt, maxOutputTokens }).text).toBe(prompt)
    }
    const { embedding } = await embed({ model: provider.embedding(echo), value: prompt })
    expect(embedding.length).toBe(256)
  })
})
