/** Answers whose content is a list of parts reach callers of every language whole, streamed or not. */
import { describe, expect, test } from 'bun:test'
import { anthropicReading, asked, eventsOf, openaiReading, written } from '../../testing/clients.ts'
import { collected } from '../../translation/collect-stream.ts'
import { languages } from '../../translation/languages.ts'
import { chat } from './language.ts'

const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }], closed: true })
const text = (words: string) => ({ type: 'text', text: words })

/** As Mistral's Magistral models stream: thoughts in parts, then words in parts or as a text. */
const deltas: readonly object[] = [
  { role: 'assistant', content: '' },
  { content: [thinking('Six times ')] },
  { content: [thinking('seven.')] },
  { content: [text('It is ')] },
  { content: '42' },
  { content: [text('.'), { type: 'reference', reference_ids: [1] }] },
]
const frame = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'magistral', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const stream = Buffer.from([...deltas.map((delta) => frame(delta)), frame({}, 'stop'), 'data: [DONE]\n\n'].join(''))

const said = ({ parts }: ReturnType<typeof collected>) =>
  parts.map((part) => [part.kind, 'text' in part ? part.text : ''])

describe('content in parts', () => {
  const events = eventsOf(chat.provider, stream)

  test('is read from a stream', () => {
    expect(said(collected(events))).toEqual([
      ['thought', 'Six times seven.'],
      ['text', 'It is 42.'],
    ])
  })

  test('reaches a messages client in a stream', async () => {
    const client = anthropicReading(written(languages.messages.caller ?? chat.caller, events))
    const question = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Six times seven?' }] }
    const message = await client.messages.stream(question).finalMessage()
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'Six times seven.' },
      { type: 'text', text: 'It is 42.' },
    ])
  })

  test('reaches a responses client in a stream', async () => {
    const client = openaiReading(written(languages.responses.caller ?? chat.caller, events))
    const response = await client.responses.stream({ model: 'm', input: 'Six times seven?' }).finalResponse()
    expect(response.output_text).toBe('It is 42.')
    expect(response.output[0]).toMatchObject({ type: 'reasoning', summary: [{ text: 'Six times seven.' }] })
  })

  const answerWith = (content: unknown) =>
    chat.provider.readAnswer({ choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }] })

  test('is read from a whole answer, in its order', () => {
    expect(said(answerWith([thinking('Hm'), text('It is '), text('42'), thinking('Sure'), text('!')]))).toEqual([
      ['thought', 'Hm'],
      ['text', 'It is 42'],
      ['thought', 'Sure'],
      ['text', '!'],
    ])
    expect(languages.messages.caller?.writeAnswer(answerWith([thinking('Hm'), text('42')]), asked).content).toEqual([
      expect.objectContaining({ type: 'thinking', thinking: 'Hm' }),
      { type: 'text', text: '42' },
    ])
  })

  test('is read in every form that a part has', () => {
    const forms: readonly [unknown, string[][]][] = [
      [['It is', ' 42'], [['text', 'It is 42']]],
      [text('42'), [['text', '42']]],
      [[{ type: 'output_text', text: '42' }], [['text', '42']]],
      [[{ type: 'refusal', refusal: 'No' }], [['refusal', 'No']]],
      [[{ type: 'thinking', thinking: 'Hm' }], [['thought', 'Hm']]],
      [[{ type: 'reasoning', reasoning: 'Hm' }], [['thought', 'Hm']]],
      [[{ type: 'reasoning', text: 'Hm' }], [['thought', 'Hm']]],
      [[{ type: 'reference', reference_ids: [1] }], []],
      ['', []],
      [null, []],
    ]
    for (const [content, expected] of forms) {
      expect(said(answerWith(content))).toEqual(expected)
      const bytes = Buffer.from(frame({ content }) + frame({}, 'stop'))
      expect(said(collected(eventsOf(chat.provider, bytes)))).toEqual(expected)
    }
  })

  test('reads reasoning that is a list of texts', () => {
    const message = { reasoning_content: [text('Six '), text('seven')], content: '42' }
    const whole = chat.provider.readAnswer({ choices: [{ message, finish_reason: 'stop' }] })
    const streamed = collected(eventsOf(chat.provider, Buffer.from(frame(message) + frame({}, 'stop'))))
    for (const answer of [whole, streamed]) {
      expect(said(answer)).toEqual([
        ['thought', 'Six seven'],
        ['text', '42'],
      ])
    }
  })

  test('fails instead of losing media', () => {
    const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]
    expect(() => answerWith(content)).toThrow('media')
  })
})

test('thoughts among the parts of an earlier answer come back as thoughts', () => {
  const messages = [
    { role: 'user', content: 'Six times seven?' },
    { role: 'assistant', content: [thinking('Hm'), text('42')] },
    { role: 'user', content: 'Sure?' },
  ]
  const read = chat.caller.readRequest({ model: 'm', messages })
  expect(read.turns[1]?.parts.map(({ kind }) => kind)).toEqual(['thought', 'text'])
  expect(JSON.stringify(languages.messages.provider.writeRequest(read))).not.toContain('Hm')
})
