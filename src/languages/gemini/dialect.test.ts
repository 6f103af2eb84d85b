/** How the gateway reads requests, answers and streams of Gemini's language. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { dataOf, factsOf, framesOf, heldBack, openNext, receivedFrom, start } from '../testing/streams.ts'
import { gemini } from './dialect.ts'
import { gatewayForm } from './request-form.ts'

const url = 'http://localhost/v1beta/models/m:generateContent'
const body = (request: JsonObject, at = url): JsonObject => JSON.parse(gatewayForm(JSON.stringify(request), at))
const user = (...parts: JsonObject[]) => ({ role: 'user', parts })
const hello = { contents: [user({ text: 'efgh' })] }

describe('a request', () => {
  test('is read with its model and stream from the address, and its limits from generationConfig', () => {
    const generationConfig = { maxOutputTokens: 9, candidateCount: 2 }
    const request = { ...hello, systemInstruction: { parts: { text: 'abcd' } }, generationConfig, serviceTier: 'flex' }
    const stream = 'http://localhost/v1/models/openai%2Fgpt-4o:streamGenerateContent?alt=sse'
    expect(gemini.read(body(request, stream))).toEqual({
      model: 'openai/gpt-4o',
      stream: true,
      inputEstimate: 2,
      outputLimit: 9,
      choices: 2,
      beyondBody: false,
      unbounded: null,
      sessionId: null,
      serviceTier: { name: 'flex', param: 'serviceTier' },
    })
    expect(body(request, 'http://localhost/v1/models/qwen:8b:generateContent').model).toBe('qwen:8b')
  })

  test('is beyond its body with files and caches, and unbounded with tools of the provider and with media', () => {
    const read = (more: JsonObject) => gemini.read(body({ ...hello, ...more }))
    expect(read({ contents: [user({ inlineData: { mimeType: 'image/png', data: 'AAAA' } })] }).beyondBody).toBe(true)
    expect(read({ cachedContent: 'cachedContents/a' }).beyondBody).toBe(true)
    expect(read({ tools: [{ functionDeclarations: [] }] }).unbounded).toBeNull()
    expect(read({ tools: [{ codeExecution: {} }] })).toMatchObject({
      unbounded: 'tools',
      unboundedWhy: expect.stringContaining('codeExecution'),
    })
    const media = { generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }
    expect(read(media).unbounded).toBe('generationConfig.responseModalities')
  })

  test('is refused without contents, with settings of wrong types and with members that hide settings', () => {
    const refusal = (param: string) => expect.objectContaining({ code: 'invalid_parameter', param })
    expect(() => gemini.read(body({}))).toThrow(refusal('contents'))
    const config = { generationConfig: { maxOutputTokens: '9' } }
    expect(() => gemini.read(body({ ...hello, ...config }))).toThrow(refusal('generationConfig.maxOutputTokens'))
    expect(() => body({ ...hello, 'generationConfig.topK': 1 })).toThrow(refusal('generationConfig.topK'))
    expect(() => body({ ...hello, generationConfig: [] })).toThrow(refusal('generationConfig'))
    expect(() => body({ ...hello, generationConfig: { top_k: 1, topK: 2 } })).toThrow(refusal('topK'))
  })

  test('gives every text with its role, arguments as JSON, and replaces it in place', () => {
    const request = body({
      system_instruction: { parts: [{ text: 'one' }] },
      contents: [
        user(
          { text: 'two' },
          { inline_data: { mime_type: 'text/plain', data: Buffer.from('three').toString('base64') } },
        ),
        {
          role: 'model',
          parts: [
            { text: 'four', thought: true, thoughtSignature: 'c2ln' },
            { functionCall: { name: 'f', args: { a_b: 'five' } } },
          ],
        },
        user({ functionResponse: { name: 'f', response: { output: 'six' } } }),
      ],
      tools: [{ functionDeclarations: [{ name: 'f', description: 'seven' }] }],
      generationConfig: { stopSequences: ['eight'] },
      brandNew: { inside: 'nine' },
    })
    const slots = gemini.requestText(request)
    expect(slots.map(({ role, kind, text }) => [role, kind, text])).toEqual([
      ['system', 'content', 'one'],
      ['user', 'content', 'two'],
      ['user', 'content', 'three'],
      ['assistant', 'reasoning', 'four'],
      ['assistant', 'name', 'f'],
      ['assistant', 'tool_arguments', '{"a_b":"five"}'],
      ['tool', 'name', 'f'],
      ['tool', 'tool_result', 'six'],
      ['system', 'name', 'f'],
      ['system', 'content', 'seven'],
      [null, 'content', 'nine'],
      [null, 'content', 'eight'],
    ])
    for (const slot of slots) slot.replace(slot.kind === 'tool_arguments' ? '{"a_b":"-"}' : '-')
    const text = JSON.stringify(request)
    expect(text).not.toMatch(/one|two|three|four|five|six|seven|eight|nine|c2ln/)
    expect(text).toContain(Buffer.from('-').toString('base64'))
  })
})

const chunk = (parts: object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2 },
  modelVersion: 'gemini-3-pro',
  responseId: 'r1',
})
const sse = (...frames: object[]) =>
  framesOf(Buffer.from(frames.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')))

describe('a stream', () => {
  const call = { functionCall: { name: 'look', args: { at: 'sky' } }, thoughtSignature: 'c2ln' }
  const frames = sse(
    chunk([{ text: 'Hm', thought: true }]),
    chunk([{ text: 'One ' }]),
    chunk([call, { text: 'two' }], { groundingMetadata: { webSearchQueries: ['a query'] } }),
    chunk([{ text: '' }], { finishReason: 'STOP', citationMetadata: { citationSources: [{ title: 'A title' }] } }),
  )

  test('ends with the finish of its candidates, and reports text and usage', () => {
    const facts = factsOf(gemini, frames)
    expect(facts.map(({ terminal, textLength }) => [terminal, textLength])).toEqual([
      [false, 2],
      [false, 4],
      [false, 6],
      [true, 0],
    ])
    expect(facts.at(-1)?.usage).toMatchObject({ inputTokens: 5, outputTokens: 5, reasoningTokens: 2 })
    const two = { ...start, choices: 2 }
    expect(factsOf(gemini, sse(chunk([], { finishReason: 'STOP' })), two).map(({ terminal }) => terminal)).toEqual([
      false,
    ])
    expect(factsOf(gemini, sse({ promptFeedback: { blockReason: 'SAFETY' } }))[0]).toMatchObject({
      terminal: true,
      error: null,
    })
    expect(factsOf(gemini, sse({ error: { code: 429, status: 'RESOURCE_EXHAUSTED' } }))[0]).toMatchObject({
      terminal: true,
      error: 'resource_exhausted',
    })
    expect(factsOf(gemini, sse({ choices: [{ delta: { content: 'a' } }] }))[0]).toMatchObject({ foreign: true })
  })

  test('is unreadable where data is no object, unless it only keeps the stream open', () => {
    const isForeign = (data: string) => gemini.reader(start).frame({ event: null, data }).foreign === true
    for (const data of ['{"candidates":[{', '[{"candidates":[]}]', '"a"', 'words', '[DONE]', '{"candidates":[]}}']) {
      expect([data, isForeign(data)]).toEqual([data, true])
    }
    for (const data of ['ping', '', '{"candidates":[]}']) expect([data, isForeign(data)]).toEqual([data, false])
  })

  test('shows every text: what the model says, thinks, calls and cites', () => {
    expect(receivedFrom(gemini, frames)).toMatchObject({
      channels: { '0/thought': 'Hm', '0/text': 'One two' },
      kinds: { '0/thought': 'reasoning', '0/text': 'content' },
      wholes: [
        '0/~part/functionCall/name=look',
        '0/~part/functionCall/args={"at":"sky"}',
        '0/~groundingMetadata/webSearchQueries#0=a query',
        '0/~citationMetadata/citationSources#0/title=A title',
      ],
    })
  })

  test('says the same to a client, however much of its text is held back', () => {
    const texts = fc.array(fc.record({ text: fc.string({ maxLength: 8 }), thought: fc.boolean() }), { maxLength: 8 })
    const holds = fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(texts, holds, (said, hold) => {
        const whole = sse(
          ...said.map(({ text, thought }) => chunk([{ text, ...(thought && { thought: true }) }])),
          chunk([call], { finishReason: 'STOP' }),
        )
        let turn = 0
        const late = heldBack(gemini, whole, () => hold[turn++ % hold.length] ?? 0)
        expect(receivedFrom(gemini, late)).toEqual(receivedFrom(gemini, whole))
        expect(factsOf(gemini, late).at(-1)?.terminal).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test('sends all of a thought before its signature', () => {
    const frame = (part: JsonObject) => ({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] })
    const parts = [{ text: 'I look', thought: true }, { text: '', thought: true, thoughtSignature: 's' }, { text: 'A' }]
    const bytes = Buffer.from(parts.map((part) => `data: ${JSON.stringify(frame(part))}\n\n`).join(''))
    const sent = dataOf(heldBack(gemini, framesOf(bytes), () => 4)).map((data) => JSON.stringify(data))
    const signed = sent.findIndex((data) => data.includes('thoughtSignature'))
    const thoughts = sent.flatMap((data, at) => (data.includes('"text":"I ') || data.includes('look') ? [at] : []))
    expect(thoughts).toHaveLength(2)
    expect(thoughts.every((at) => at < signed)).toBe(true)
  })

  test('replaces arguments as JSON, and keeps the bytes of a frame that no one changed', () => {
    const reader = gemini.reader(start)
    const [frame] = sse(chunk([call]))
    if (frame === undefined) throw new Error('There is no frame')
    expect(openNext(reader, frame)?.bytes()).toBe(frame.bytes)
    const opened = openNext(reader, frame)
    for (const piece of opened?.pieces ?? []) if (piece.kind === 'tool_arguments') piece.replace('{"at":"-"}')
    const [data] = dataOf(framesOf(opened?.bytes() ?? new Uint8Array(0)))
    expect(JSON.stringify(data)).toContain('"args":{"at":"-"}')
  })

  test('contradicts itself where clients may read a part in two ways', () => {
    const contradicts = (part: object) => {
      const [frame] = sse(chunk([part]))
      return frame === undefined ? null : openNext(gemini.reader(start), frame)?.contradicts === true
    }
    expect(contradicts({ text: 'a' })).toBe(false)
    expect(contradicts({ text: 'a', thought: 'yes' })).toBe(true)
    expect(contradicts({ text: ['a'] })).toBe(true)
    expect(contradicts({ text: 5 })).toBe(true)
  })

  test('is cut off with an error, and ends an escalation with the words that a client shows', () => {
    const reader = gemini.reader(start)
    const failure = new Failure('consumer_group_rate_limit_exceeded', { retryAfter: 7 })
    expect(dataOf(framesOf(reader.errorFrames(failure, 'req-1')))).toEqual([
      {
        error: {
          code: 429,
          message: failure.message,
          status: 'RESOURCE_EXHAUSTED',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
              reason: 'consumer_group_rate_limit_exceeded',
              domain: 'gatehouse',
              metadata: { request_id: 'req-1' },
            },
            { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' },
          ],
        },
        request_id: 'req-1',
      },
    ])
    const verdictan = { verdict: 'ESCALATE', reason_code: 'review' }
    expect(dataOf(framesOf(reader.escalationFrames(verdictan, false)))).toMatchObject([
      {
        candidates: [{ content: { parts: [{ text: expect.stringContaining('reviewer') }] }, finishReason: 'SAFETY' }],
        verdictan,
      },
    ])
  })

  test("has a provider's error of another form in Google's", () => {
    const reader = gemini.reader(start)
    const [frame] = sse({ error: { message: 'Too many', type: 'rate_limit_error' } })
    if (frame === undefined) throw new Error('There is no frame')
    const own = reader.ownError?.(frame, 'req-1')
    expect(own?.data).toContain('"status":"INTERNAL"')
    expect(own?.data).toContain('Too many')
    expect(gemini.providerError(404, { error: { code: 404, message: 'No', status: 'NOT_FOUND' } }, 'r')).toBeNull()
    expect(gemini.providerError(404, { error: 'No' }, 'r')).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } })
  })
})
