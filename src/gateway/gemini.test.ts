/** Google's own client, and plain requests in its language, against every kind of provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { ApiError, FinishReason, FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai'
import { z } from 'zod'
import { messagesAnswer, messagesStream } from '../../test/fakes/messages.ts'
import { compilePolicySet } from '../policies/chain.ts'
import { InMemoryLimits } from '../usage/testing/in-memory-limits.ts'
import { completion } from './testing/gateway.ts'
import { policy, streamOf } from './testing/policies.ts'
import { geminiFrames, sentBody, sse, startTranslating, type TranslatingGateway } from './testing/translating.ts'
import { testModel, testProvider } from './testing/worker.ts'

let at: TranslatingGateway
let google: GoogleGenAI

beforeAll(async () => {
  at = await startTranslating()
  at.running.worker.upstreams.push(
    testProvider({ id: 'sim', name: 'simulator', kind: 'simulator', allowUnlistedModels: false }),
  )
  at.running.worker.catalog.push(
    testModel({ id: 'simulator/echo', providerId: 'sim', upstreamModel: 'simulator/echo' }),
  )
  google = new GoogleGenAI({ apiKey: at.running.secret, httpOptions: { baseUrl: at.running.url } })
})
afterAll(() => at.running.stop())
beforeEach(() => {
  at.running.seen.length = 0
  at.running.worker.policies = compilePolicySet([])
  for (const path of Object.keys(at.answers)) delete at.answers[path]
})

const asked = { contents: [{ role: 'user', parts: [{ text: 'Good morning to you' }] }] }

const post = (path: string, body: object | string = asked, headers: Record<string, string> = {}) =>
  fetch(`${at.running.url}/v1beta/models/${path}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': at.running.secret, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const lastOutcome = () => at.running.worker.journal.outcomes().at(-1)

/** One answer of Gemini. */
const response = (parts: object[], more: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
  modelVersion: 'up-gemini',
  responseId: 'r1',
})

const textsOf = async (stream: AsyncGenerator<{ text?: string | undefined }>): Promise<string> => {
  let text = ''
  for await (const { text: piece } of stream) text += piece ?? ''
  return text
}

describe("Google's client", () => {
  test('reads whole and streamed answers of the simulator, and its count of tokens', async () => {
    const ask = { model: 'simulator/echo', contents: 'Good morning to you' }
    const whole = await google.models.generateContent(ask)
    expect([whole.text, whole.usageMetadata?.totalTokenCount]).toEqual(['Good morning to you', 8])
    expect(await textsOf(await google.models.generateContentStream(ask))).toBe('Good morning to you')
    expect((await google.models.countTokens(ask)).totalTokens).toBe(4)
    const cut = await google.models.generateContent({ ...ask, config: { maxOutputTokens: 2 } })
    expect([cut.text, cut.candidates?.[0]?.finishReason]).toEqual(['Good morning', 'MAX_TOKENS'])
  })

  test('lists the models and reads one, whose name may have slashes', async () => {
    const names: (string | undefined)[] = []
    for await (const { name } of await google.models.list()) names.push(name)
    expect(names).toContain('models/simulator/echo')
    expect((await google.models.get({ model: 'simulator/echo' })).name).toBe('models/simulator/echo')
    const error = await google.models.get({ model: 'no-such' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ status: 404, message: expect.stringContaining('model_not_found') })
  })

  test('gets a call of a tool from a chat provider and sends the result back', async () => {
    const call = { id: 'call_7', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    at.answers['/v1/chat/completions'] = () =>
      Response.json({ ...completion, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const chat = google.chats.create({
      model: 'openai',
      config: {
        systemInstruction: 'Be brief',
        tools: [
          {
            functionDeclarations: [
              {
                name: 'look',
                description: 'Looks',
                parameters: { type: Type.OBJECT, properties: { at: { type: Type.STRING, nullable: true } } },
              },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
      },
    })
    const called = await chat.sendMessage({ message: 'What is there?' })
    expect(called.functionCalls).toEqual([{ id: 'call_7', name: 'look', args: { at: 'sky' } }])
    expect(sentBody(at.running)).toMatchObject({
      model: 'up-openai',
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'What is there?' },
      ],
      tool_choice: 'required',
      tools: [
        {
          type: 'function',
          function: {
            name: 'look',
            parameters: { type: 'object', properties: { at: { type: ['string', 'null'] } } },
          },
        },
      ],
    })
    at.answers['/v1/chat/completions'] = () => Response.json(completion)
    const message2 = [{ functionResponse: { id: 'call_7', name: 'look', response: { output: 'A cloud' } } }]
    expect((await chat.sendMessage({ message: message2 })).text).toBe('Hello')
    expect(sentBody(at.running).messages).toMatchObject([
      {},
      {},
      { role: 'assistant', tool_calls: [{ id: 'call_7', function: { name: 'look', arguments: '{"at":"sky"}' } }] },
      { role: 'tool', tool_call_id: 'call_7', content: 'A cloud' },
    ])
  })

  test('gets streamed text, usage and cost from each kind of provider', async () => {
    at.answers['/v1/chat/completions'] = sse(streamOf('Grüße ', 'aus ', '東京'))
    at.answers['/v1/messages'] = sse(messagesStream())
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([response([{ text: 'Grüße aus ' }]), response([{ text: '東京' }], { finishReason: 'STOP' })]),
    )
    for (const model of ['openai', 'anthropic', 'gemini']) {
      const stream = await google.models.generateContentStream({ model, contents: 'Hi' })
      expect([model, await textsOf(stream)]).toEqual([model, 'Grüße aus 東京'])
      expect(lastOutcome()).toMatchObject({
        verdict: 'allow',
        reason_code: 'ok',
        details: { route: 'POST /v1beta/models/{model}:streamGenerateContent', model, stream: true },
        event_cost_attribution: { provider: model },
      })
    }
  })

  test('gets JSON by a schema, thoughts and images to and from a messages provider', async () => {
    at.answers['/v1/messages'] = () =>
      new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    await google.models.generateContent({
      model: 'anthropic',
      contents: [{ inlineData: { mimeType: 'image/png', data: 'aaaa' } }, { text: 'What is it?' }],
      config: {
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object', properties: { is: { type: 'string' } } },
        thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 },
        maxOutputTokens: 4096,
      },
    })
    expect(sentBody(at.running)).toMatchObject({
      model: 'up-anthropic',
      max_tokens: 4096,
      messages: [{ content: [{ type: 'image', source: { data: 'aaaa' } }, { text: 'What is it?' }] }],
      output_config: { format: { type: 'json_schema', schema: { type: 'object' } } },
    })
    expect(JSON.stringify(sentBody(at.running).thinking)).toContain('enabled')
  })
})

describe('a provider of the same language', () => {
  const path = '/v1beta/models/up-gemini:generateContent'

  test("gets the caller's request without what stands in the address", async () => {
    at.answers[path] = () => Response.json(response([{ text: 'Hi' }], { finishReason: 'STOP' }))
    const generationConfig = {
      temperature: 0.5,
      maxOutputTokens: 50,
      responseSchema: { type: 'STRING', max_length: 3 },
    }
    const body = { ...asked, generationConfig, safetySettings: [], tools: [{ googleSearch: {} }] }
    const answer = await post('gemini:generateContent', body)
    expect(await answer.json()).toEqual(response([{ text: 'Hi' }], { finishReason: 'STOP' }))
    expect(sentBody(at.running)).toEqual(body)
    expect(at.running.seen.at(-1)?.request.headers.get('x-goog-api-key')).toBe('key')
    expect(lastOutcome()).toMatchObject({ event_cost_attribution: { input_tokens: 11, output_tokens: 7 } })
  })

  test('gets names in camel case, numbers as the caller wrote them, and no member in two spellings', async () => {
    at.answers[path] = () => Response.json(response([{ text: 'Hi' }], { finishReason: 'STOP' }))
    const snake =
      '{"contents":[{"parts":[{"function_call":{"name":"f","args":{"a_b":12345678901234567890}}}]}],"system_instruction":{"parts":{"text":"Be brief"}},"generation_config":{"max_output_tokens":9}}'
    expect((await post('gemini:generateContent', snake)).status).toBe(200)
    expect(at.running.seen.at(-1)?.body).toBe(
      '{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"a_b":12345678901234567890}}}]}],"systemInstruction":{"parts":{"text":"Be brief"}},"generationConfig":{"maxOutputTokens":9}}',
    )
    const twice = await post('gemini:generateContent', { ...asked, systemInstruction: {}, system_instruction: {} })
    expect([twice.status, await twice.json()]).toMatchObject([422, { error: { status: 'INVALID_ARGUMENT' } }])
  })

  test('passes an answer without candidates on if the prompt was blocked', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 4 } }
    at.answers[path] = () => Response.json(blocked)
    expect(await (await post('gemini:generateContent')).json()).toEqual(blocked)
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(geminiFrames([blocked]))
    expect(await (await post('gemini:streamGenerateContent?alt=sse')).text()).toBe(
      `data: ${JSON.stringify(blocked)}\r\n\r\n`,
    )
    expect(lastOutcome()).toMatchObject({ reason_code: 'ok' })
  })

  test('counts tokens, also those of a whole request', async () => {
    at.answers['/v1beta/models/up-gemini:countTokens'] = () => Response.json({ totalTokens: 31 })
    for (const body of [asked, { generateContentRequest: { model: 'models/gemini', ...asked } }]) {
      const answer = await post('gemini:countTokens', body)
      expect([answer.status, await answer.json()]).toEqual([200, { totalTokens: 31 }])
      expect(sentBody(at.running)).toEqual({ generateContentRequest: { model: 'models/up-gemini', ...asked } })
    }
    expect(lastOutcome()?.event_cost_attribution).toBeUndefined()
    at.answers['/v1/messages/count_tokens'] = () => Response.json({ input_tokens: 8 })
    expect(await (await post('anthropic:countTokens')).json()).toEqual({ totalTokens: 8 })
    expect(await (await post('openai:countTokens')).json()).toMatchObject({
      error: { code: 501, status: 'UNIMPLEMENTED', details: [{ reason: 'token_count_unsupported' }] },
    })
  })

  test('ends a stream that breaks off with an error in the form of the language', async () => {
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(geminiFrames([response([{ text: 'Hi' }])]))
    const text = await (await post('gemini:streamGenerateContent?alt=sse')).text()
    const last = JSON.parse(text.trim().split('data: ').at(-1) ?? '')
    expect(last).toMatchObject({ error: { code: 502, status: 'UNAVAILABLE' } })
    expect(lastOutcome()).toMatchObject({ verdict: 'error', reason_code: 'provider.interrupted' })
  })
})

describe('a frame that cannot be read', () => {
  const path = '/v1beta/models/up-gemini:streamGenerateContent'
  const said = geminiFrames([response([{ text: 'Hi' }])])
  const end = geminiFrames([response([], { finishReason: 'STOP' })])
  const elements = z.array(z.object({ error: z.object({ code: z.number() }).optional() }))

  test('ends the stream with an error, and is not passed on', async () => {
    for (const broken of ['{"candidates":[{', 'nonsense']) {
      at.answers[path] = sse(`${said}data: ${broken}\n\n${end}`)
      const text = await (await post('gemini:streamGenerateContent?alt=sse')).text()
      expect(text).toStartWith(said)
      expect(text).not.toContain('finishReason')
      expect(JSON.parse(text.slice(said.length + 'data: '.length))).toMatchObject({ error: { code: 502 } })
      expect(lastOutcome()).toMatchObject({ verdict: 'error', reason_code: 'provider.invalid_answer' })
      const array = elements.parse(await (await post('gemini:streamGenerateContent')).json())
      expect(array.map(({ error }) => error?.code)).toEqual([undefined, 502])
    }
  })

  test('is a whole error answer if it comes first', async () => {
    at.answers[path] = sse(`data: {"candidates":[{\n\n${said}${end}`)
    const answer = await post('gemini:streamGenerateContent')
    expect([answer.status, await answer.json()]).toMatchObject([502, { error: { code: 502 } }])
  })

  test('ends the stream as interrupted if the connection ended within it, with and without policies', async () => {
    at.answers[path] = sse(`${said}data: {"candidates":[{`)
    const config = { terms: ['secret'], action: 'block' }
    const filter = policy({ id: 'p', kind: 'term-filter', stages: ['pre_response'], config })
    for (const policies of [[], [filter]]) {
      at.running.worker.policies = compilePolicySet(policies)
      const array = elements.parse(await (await post('gemini:streamGenerateContent')).json())
      expect(array.map(({ error }) => error?.code)).toEqual([undefined, 502])
      expect(lastOutcome()).toMatchObject({ verdict: 'error', reason_code: 'provider.interrupted' })
    }
  })

  test('is none if it only keeps the stream open, and an array leaves it out', async () => {
    at.answers[path] = sse(`data: ping\n\n${said}data:\n\n${end}`)
    const array = elements.parse(await (await post('gemini:streamGenerateContent')).json())
    expect(array.map(({ error }) => error)).toEqual([undefined, undefined])
  })
})

describe('the address and the token', () => {
  test('streams a JSON array without alt=sse', async () => {
    const answer = await post('simulator%2Fecho:streamGenerateContent')
    expect(answer.headers.get('content-type')).toBe('application/json; charset=UTF-8')
    const responses: { candidates: { content: { parts: { text: string }[] } }[] }[] = JSON.parse(await answer.text())
    const text = responses.map(({ candidates }) => candidates[0]?.content.parts[0]?.text).join('')
    expect([responses.length, text]).toEqual([4, 'Good morning to you'])
  })

  test('takes the token in either header and refuses it in the address without repeating it', async () => {
    const bearer = { authorization: `Bearer ${at.running.secret}`, 'x-goog-api-key': '' }
    expect((await post('simulator/echo:generateContent', asked, bearer)).status).toBe(200)
    const missing = await (await post('simulator/echo:generateContent', asked, { 'x-goog-api-key': '' })).json()
    expect(missing).toMatchObject({
      error: {
        message: 'Send Authorization: Bearer <API token>, or x-goog-api-key: <API token>',
        details: [{ reason: 'missing_api_key' }],
      },
    })
    const refused = await post(`simulator/echo:generateContent?key=${at.running.secret}`)
    const text = await refused.text()
    expect([refused.status, text]).toEqual([400, expect.stringContaining('x-goog-api-key')])
    expect(text).not.toContain(at.running.secret)
    const wrong = await post('simulator/echo:generateContent', asked, { 'x-goog-api-key': 'wrong' })
    expect([wrong.status, await wrong.json()]).toMatchObject([
      401,
      { error: { code: 401, status: 'UNAUTHENTICATED', details: [{ reason: 'invalid_api_token' }] } },
    ])
  })

  test('refuses an unknown method, another verb and a model that is not the one of the address', async () => {
    const unknown = await post('simulator/echo:predict')
    expect([unknown.status, await unknown.json()]).toMatchObject([
      404,
      {
        error: {
          status: 'NOT_FOUND',
          message:
            'The gateway has no method predict: end the address with one of :generateContent, :streamGenerateContent, :countTokens',
        },
      },
    ])
    const odd = await (await post('simulator/echo:pre%20dict')).json()
    expect(odd).toMatchObject({ error: { message: expect.stringContaining('names no known method') } })
    const model = await post('simulator/echo:generateContent', { ...asked, model: 'models/other' })
    expect([model.status, await model.json()]).toMatchObject([
      422,
      { error: { message: expect.stringContaining('model') } },
    ])
    const read = await fetch(`${at.running.url}/v1beta/models/x`, { method: 'DELETE' })
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'GET'])
  })
})

describe('policies and limits', () => {
  test('redact the text of requests, and of whole and streamed answers', async () => {
    at.running.worker.policies = compilePolicySet([
      policy({
        id: 'p',
        kind: 'pii',
        stages: ['pre_request', 'pre_response'],
        config: { types: ['email'], action: 'redact' },
      }),
    ])
    const parts = [{ text: 'Write to ann' }, { text: '@example.com' }]
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([
        response([{ text: 'ann@exam' }]),
        response([{ text: 'ple.com' }]),
        response([{ functionCall: { name: 'send', args: { to: 'bob@example.com' } } }], { finishReason: 'STOP' }),
      ]),
    )
    const body = { contents: [{ role: 'user', parts }], systemInstruction: { parts: [{ text: 'eve@example.com' }] } }
    const streamed = await (await post('gemini:streamGenerateContent?alt=sse', body)).text()
    expect(streamed).not.toMatch(/ann@|ple\.com|bob@/)
    expect(streamed).toContain('[EMAIL')
    expect(at.running.seen.at(-1)?.body).not.toContain('example.com')
    at.answers['/v1beta/models/up-gemini:generateContent'] = () =>
      Response.json(response([{ text: 'ann@example.com' }], { finishReason: 'STOP' }))
    const whole = await (await post('gemini:generateContent', body)).text()
    expect(whole).toContain('[EMAIL')
    expect(whole).not.toContain('ann@example.com')
  })

  test('see the tools that are offered and called, whole and streamed, and remove single functions', async () => {
    const functionDeclarations = [{ name: 'look' }, { name: 'delete' }]
    const body = { ...asked, tools: [{ functionDeclarations, googleSearch: { timeRangeFilter: { startTime: 'a' } } }] }
    const deny = (action: string, stage: 'pre_request' | 'pre_response') =>
      compilePolicySet([
        policy({ id: 'p', kind: 'tool-access', stages: [stage], config: { deny: ['delete', 'googleSearch'], action } }),
      ])
    at.answers['/v1beta/models/up-gemini:generateContent'] = () =>
      Response.json(response([{ functionCall: { name: 'delete', args: {} } }], { finishReason: 'STOP' }))
    at.running.worker.policies = deny('remove', 'pre_request')
    expect((await post('gemini:generateContent', body)).status).toBe(200)
    expect(sentBody(at.running).tools).toEqual([{ functionDeclarations: [{ name: 'look' }] }])
    at.running.worker.policies = deny('deny', 'pre_response')
    expect((await post('gemini:generateContent', asked)).status).toBe(403)
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([response([{ functionCall: { name: 'delete', args: {} } }], { finishReason: 'STOP' })]),
    )
    const streamed = await (await post('gemini:streamGenerateContent?alt=sse', asked)).text()
    expect(streamed).not.toContain('functionCall')
    expect(streamed).toContain('PERMISSION_DENIED')
  })

  test('block with an error in the form of the language, before and within a stream', async () => {
    const block = { id: 'p', kind: 'term-filter', config: { terms: ['secret'], action: 'block' } }
    at.running.worker.policies = compilePolicySet([policy({ ...block, stages: ['pre_request', 'pre_response'] })])
    const refused = await post('gemini:generateContent', { contents: [{ parts: [{ text: 'a secret' }] }] })
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 400, status: 'INVALID_ARGUMENT' }, verdictan: { verdict: 'BLOCK' } },
    ])
    at.answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([
        response([{ text: 'Once upon a time, long ago, ' }]),
        response([{ text: 'a sec' }]),
        response([{ text: 'ret' }]),
      ]),
    )
    const text = await (await post('gemini:streamGenerateContent?alt=sse')).text()
    expect(text).toContain('Once upon a time')
    expect(text).not.toContain('ret"')
    expect(text).toContain('"reason":"content_policy_violation"')
  })

  test('send nothing of a call that they block, and no reason to finish', async () => {
    const block = {
      kind: 'term-filter',
      config: { terms: ['secret'], action: 'block' },
      stages: ['pre_response' as const],
    }
    const watch = { id: 'w', kind: 'tool-access', config: { deny: ['other'] }, stages: ['pre_response' as const] }
    const call = { functionCall: { name: 'f', args: { q: 'a secret' } } }
    const path = '/v1beta/models/up-gemini:streamGenerateContent'
    for (const policies of [[block], [block, { ...watch, mode: 'monitor' as const }]]) {
      at.running.worker.policies = compilePolicySet(policies.map((each) => policy({ id: 'p', ...each })))
      at.answers[path] = sse(geminiFrames([response([call], { finishReason: 'STOP' })]))
      expect((await post('gemini:streamGenerateContent?alt=sse')).status).toBe(400)
      at.answers[path] = sse(
        geminiFrames([response([{ text: 'Let me see' }]), response([call], { finishReason: 'STOP' })]),
      )
      const text = await (await post('gemini:streamGenerateContent?alt=sse')).text()
      expect(text).toContain('Let me see')
      expect(text).not.toMatch(/functionCall|finishReason/)
      expect(text).toContain('"reason":"content_policy_violation"')
    }
  })

  test('answer an escalated request in words that the clients show, whole and streamed', async () => {
    at.running.worker.policies = compilePolicySet([
      policy({ id: 'a', kind: 'escalate', when: 'true', config: { reason_code: 'a.b' } }),
    ])
    const ask = { model: 'gemini', contents: 'Good morning' }
    const whole = await google.models.generateContent(ask)
    expect(whole.candidates?.[0]?.finishReason).toBe(FinishReason.SAFETY)
    expect(whole.text).toContain('gatehouse escalation claim')
    expect(await textsOf(await google.models.generateContentStream(ask))).toContain('gatehouse escalation claim')
    expect(at.running.seen.length).toBe(0)
  })

  test('a budget lowers the output limit inside generationConfig', async () => {
    const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
    const { worker } = at.running
    const { usageLimits } = worker
    Object.assign(worker, { usageLimits: new InMemoryLimits({ 'token/t/money': 400_000, 'token/t/requests': 5 }) })
    try {
      const secret = worker.addToken({ accounts })
      at.answers['/v1beta/models/up-gemini:generateContent'] = () =>
        Response.json(response([{ text: 'Hi' }], { finishReason: 'STOP' }))
      const limited = { ...asked, generationConfig: { maxOutputTokens: 5000 } }
      const answer = await post('gemini:generateContent', limited, { 'x-goog-api-key': secret })
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
      const { generationConfig } = z
        .object({ generationConfig: z.object({ maxOutputTokens: z.number() }) })
        .parse(sentBody(at.running))
      expect(generationConfig.maxOutputTokens).toBeLessThan(400)
      const search = { ...limited, tools: [{ googleSearch: {} }] }
      const refused = await post('gemini:generateContent', search, { 'x-goog-api-key': secret })
      expect([refused.status, await refused.json()]).toMatchObject([
        403,
        { error: { message: expect.stringContaining('googleSearch'), details: [{ reason: 'tokens.cost_unbounded' }] } },
      ])
    } finally {
      Object.assign(worker, { usageLimits })
    }
  })
})
