import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cut } from '../../../test/fakes/splits.ts'
import type { NeutralAnswer, NeutralEvent } from '../neutral.ts'
import { isObject } from '../reading/json-value.ts'
import type { CallerLanguage, ProviderLanguage } from '../translation-language.ts'
import { type Translation, translated, UnreadableAnswer } from './translate-response.ts'

/** A provider that says one letter a frame, `!` for its end; whole answers are `{"letters": "…"}`. */
const letters: ProviderLanguage = {
  name: 'gemini',
  writeRequest: () => ({}),
  readAnswer(body) {
    if (!isObject(body) || typeof body.letters !== 'string') throw new TypeError('No letters')
    return { ...blank, parts: [{ kind: 'text', at: '', text: body.letters }] }
  },
  readError: (status, body) => ({ status, code: null, message: JSON.stringify(body) }),
  streamReader: () => ({
    frame(_event, data): NeutralEvent[] {
      if (!/^\p{L}$|^[-!]$/u.test(data)) throw new TypeError('Not a letter')
      if (data === '-') return []
      return data === '!' ? [{ type: 'end' }] : [{ type: 'text', part: 0, text: data }]
    },
    end: () => [{ type: 'part_end', part: 0 }],
  }),
}

const blank: NeutralAnswer = { id: null, model: null, parts: [], finish: 'stop', stopSequence: null, usage: null }

/** A caller that is told letters in brackets. */
const brackets: CallerLanguage = {
  name: 'chat',
  readRequest() {
    throw new Error('Not asked here')
  },
  writeAnswer: ({ parts: [part] }) => ({ said: part?.kind === 'text' ? part.text : null }),
  writeError: ({ status, message }) => ({ error: { status, message } }),
  streamWriter: () => ({
    event(event) {
      if (event.type === 'text') return `data: [${event.text}]\n\n`
      if (event.type === 'part_end') return 'data: rest\n\n'
      return event.type === 'end' ? 'data: end\n\n' : ''
    },
  }),
}

let heard = 0
const translation: Translation = {
  from: letters,
  to: brackets,
  asked: { model: 'm', exchangeId: 'e', includeUsage: true },
  limit: 1000,
  heard() {
    heard += 1
  },
}

type Piece = string | Uint8Array | 'break'

async function answering(pieces: readonly Piece[], init: ResponseInit = {}): Promise<Response> {
  const waiting = [...pieces]
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = waiting.shift()
        if (piece === undefined) controller.close()
        else if (piece === 'break') controller.error(new Error('The connection broke'))
        else controller.enqueue(Buffer.from(piece))
      },
    },
    { highWaterMark: 0 },
  )
  return await translated(
    new Response(body, { headers: { 'content-type': 'text/event-stream' }, ...init }),
    translation,
  )
}

/** What came until the end, and what it ended with. */
async function read(answer: Response | Promise<Response>): Promise<{ text: string; thrown: unknown }> {
  const reader = ((await answer).body ?? new Blob([]).stream()).getReader()
  let text = ''
  for (;;) {
    try {
      const { done, value } = await reader.read()
      if (done) return { text, thrown: null }
      text += new TextDecoder().decode(value)
    } catch (thrown) {
      return { text, thrown }
    }
  }
}

const json = { headers: { 'content-type': 'application/json' } }
/** As providers send answers that they know the length of. */
const declared = { headers: { 'content-type': 'application/json', 'content-length': '20' } }

test('every split of the bytes gives the same answer', async () => {
  const stream = Buffer.from('data: é\r\n\r\ndata: b\n\ndata: c\r\rdata: !\n\n')
  const whole = await read(answering([stream]))
  expect(whole).toEqual({ text: 'data: [é]\n\ndata: [b]\n\ndata: [c]\n\ndata: end\n\ndata: rest\n\n', thrown: null })
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: stream.length - 1 })), async (cuts) => {
      expect(
        await read(
          answering(
            cut(
              stream,
              cuts.toSorted((a, b) => a - b),
            ),
          ),
        ),
      ).toEqual(whole)
    }),
  )
})

test('sends a frame before it asks for the next one', async () => {
  let asked = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        asked += 1
        controller.enqueue(Buffer.from('data: a\n\n'))
      },
    },
    { highWaterMark: 0 },
  )
  const upstream = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  const answer = await translated(upstream, translation)
  const reader = answer.body?.getReader()
  await reader?.read()
  expect(asked).toBe(1)
  await reader?.read()
  expect(asked).toBe(2)
})

test("cuts the translated stream where the provider's stream is cut, after the earlier frames", async () => {
  const { text, thrown } = await read(answering(['data: a\n\n', 'break']))
  expect(text).toBe('data: [a]\n\n')
  expect(thrown).toBeInstanceOf(Error)
  expect(thrown).not.toBeInstanceOf(UnreadableAnswer)
})

test('reads a last frame without its blank line and adds the implied events', async () => {
  expect((await read(answering(['data: a\n\ndata: b']))).text).toBe('data: [a]\n\ndata: [b]\n\ndata: rest\n\n')
})

test('a frame that cannot be read ends the stream as unreadable, after those before it', async () => {
  const { text, thrown } = await read(answering(['data: a\n\ndata: ?\n\ndata: b\n\n']))
  expect(text).toBe('data: [a]\n\n')
  expect(thrown).toBeInstanceOf(UnreadableAnswer)
})

test('a frame longer than any may be ends the stream as unreadable', async () => {
  const { thrown } = await read(answering([`data: ${'a'.repeat(2000)}`, 'a']))
  expect(thrown).toBeInstanceOf(UnreadableAnswer)
})

test('passes an empty frame on as keep-alive once the answer has begun', async () => {
  heard = 0
  const { text } = await read(answering(['data: -\n\n', 'data: a\n\n', 'data: -\n\n', ':\n\n']))
  expect(text).toBe('data: [a]\n\n:\n\n:\n\ndata: rest\n\n')
  expect(heard).toBe(4)
})

test('ignores keep-alive data before and within the answer', async () => {
  const silent = [
    'data:\n\n',
    'data\n\n',
    'event: ping\ndata:\n\n',
    'data: ping\n\n',
    'data: keep-alive\n\n',
    'data: [HEARTBEAT]\n\n',
  ]
  const { text, thrown } = await read(answering([...silent, 'data: a\n\n', ...silent, 'data: !\n\n']))
  expect(text.replaceAll(':\n\n', '')).toBe('data: [a]\n\ndata: end\n\ndata: rest\n\n')
  expect(thrown).toBeNull()
  for (const other of ['data:  \n\n', 'data: pinged\n\n', 'data: a ping\n\n', 'data: {\n\n']) {
    expect((await read(answering(['data: a\n\n', other]))).thrown).toBeInstanceOf(UnreadableAnswer)
  }
})

test('translates a whole answer in one piece, with its status and retry time', async () => {
  const answer = await answering(['{"lett', 'ers":"ab"}'], {
    status: 201,
    headers: { 'content-type': 'application/json', 'retry-after': '3', 'openai-version': 'x', 'content-length': '16' },
  })
  expect([answer.status, Object.fromEntries(answer.headers)]).toEqual([
    201,
    { 'content-type': 'application/json', 'content-length': '13', 'retry-after': '3' },
  ])
  expect(await answer.json()).toEqual({ said: 'ab' })
})

test('translates an error of any form to the caller’s language', async () => {
  for (const init of [json, declared]) {
    const error = await answering(['{"e":1}'], { ...init, status: 429 })
    expect([error.status, await error.json()]).toEqual([429, { error: { status: 429, message: '{"e":1}' } }])
  }
  const plain = await answering(['Bad gateway'], { headers: { 'content-type': 'text/event-stream' }, status: 502 })
  expect([plain.status, await plain.json()]).toEqual([502, { error: { status: 502, message: '"Bad gateway"' } }])
})

test('reports an error with a success status as an error', async () => {
  expect(await (await answering(['{"error":"x"}'], json)).json()).toEqual({
    error: { status: 200, message: '{"error":"x"}' },
  })
})

test('does not pass on an invalid or cut whole answer', async () => {
  for (const init of [json, declared]) {
    for (const body of ['{"other":1}', 'not JSON', '']) {
      expect(await read(answering([body], init))).toEqual({ text: '', thrown: expect.any(UnreadableAnswer) })
    }
    const { thrown } = await read(answering(['{"letters":', 'break'], init))
    expect(thrown).toBeInstanceOf(Error)
    expect(thrown).not.toBeInstanceOf(UnreadableAnswer)
  }
})

test('passes an answer above the limit on unread', async () => {
  const pieces = Array.from({ length: 5 }, () => 'x'.repeat(400))
  const chunked = { headers: { ...declared.headers, 'transfer-encoding': 'chunked' } }
  for (const init of [json, chunked]) expect((await read(answering(pieces, init))).text).toBe(pieces.join(''))
})

test('returns a redirect and a bodyless answer unchanged', async () => {
  for (const status of [204, 302]) {
    const upstream = new Response(null, { status })
    expect(await translated(upstream, translation)).toBe(upstream)
  }
})
