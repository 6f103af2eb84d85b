import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, type LanguageModel, streamText } from 'ai'
import { chatAnswer, chatStream } from '../fakes/chat.ts'
import { messagesAnswer, messagesStream } from '../fakes/messages.ts'
import { responsesAnswer, responsesStream } from '../fakes/responses.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let models: readonly { model: LanguageModel; whole: Buffer; stream: Buffer; broken: Buffer; text: string }[]

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  const apiKey = (await createToken(gatehouse)).token_value
  const baseURL = `${gatehouse.gatewayUrl}/v1`
  const openai = createOpenAI({ apiKey, baseURL })
  const anthropic = createAnthropic({ authToken: apiKey, baseURL })
  const text = 'Grüße aus 東京'
  const parts = ['Grüße', ' aus', ' 東京']
  models = [
    {
      model: openai.chat('fake-model'),
      whole: chatAnswer({ parts }),
      stream: chatStream({ parts }),
      broken: chatStream({ parts, finished: false }),
      text,
    },
    {
      model: openai.responses('fake-model'),
      whole: responsesAnswer(),
      stream: responsesStream(),
      broken: responsesStream({ completed: false }),
      text,
    },
    {
      model: anthropic('fake-model'),
      whole: messagesAnswer(),
      stream: messagesStream(),
      broken: messagesStream({ stopped: false }),
      text,
    },
  ]
}, 240_000)
beforeEach(() => upstream?.forget())
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

test('the ai package reads whole and streamed answers of the three text routes', async () => {
  for (const { model, whole, stream, text } of models) {
    upstream.next(jsonReply(whole))
    expect((await generateText({ model, prompt: 'hello', maxOutputTokens: 50, maxRetries: 0 })).text).toBe(text)
    upstream.next(streamReply(stream))
    expect(await streamText({ model, prompt: 'hello', maxOutputTokens: 50, maxRetries: 0 }).text).toBe(text)
  }
})

test('the ai package raises an error for a stream that breaks', async () => {
  for (const { model, broken } of models) {
    upstream.next(streamReply(broken))
    const errors: unknown[] = []
    const { fullStream } = streamText({
      model,
      prompt: 'hello',
      maxOutputTokens: 50,
      maxRetries: 0,
      onError: ({ error }) => {
        errors.push(error)
      },
    })
    for await (const _ of fullStream);
    expect(errors.length).toBeGreaterThan(0)
  }
})
