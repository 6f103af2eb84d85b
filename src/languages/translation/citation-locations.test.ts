/** Citations of a place in a document go between Anthropic's form and Converse's; none goes out without what it needs. */
import { expect, test } from 'bun:test'
import { chat } from '../chat/translation/language.ts'
import { converse } from '../converse/language.ts'
import { messages } from '../messages/translation/language.ts'
import { asked } from '../testing/clients.ts'

const places = [
  [
    { documentChar: { documentIndex: 1, start: 0, end: 3 } },
    { type: 'char_location', start_char_index: 0, end_char_index: 3 },
  ],
  [
    { documentPage: { documentIndex: 1, start: 2, end: 4 } },
    { type: 'page_location', start_page_number: 2, end_page_number: 4 },
  ],
  [
    { documentChunk: { documentIndex: 1, start: 0, end: 1 } },
    { type: 'content_block_location', start_block_index: 0, end_block_index: 1 },
  ],
] as const

test('converts a Converse citation to Anthropic’s form and back unchanged', () => {
  for (const [location, expected] of places) {
    const citation = { title: 'T', location, sourceContent: [{ text: 'src' }] }
    const content = [{ citationsContent: { content: [{ text: 'cited' }], citations: [citation] } }]
    const answer = converse.provider.readAnswer({ output: { message: { content } }, stopReason: 'end_turn' })
    const written = messages.caller?.writeAnswer(answer, asked)
    const citations = [{ ...expected, cited_text: 'src', document_index: 1, document_title: 'T' }]
    expect(written?.content).toEqual([{ type: 'text', text: 'cited', citations }])
    const back = [{ role: 'assistant', content: written?.content }]
    const request = messages.caller?.readRequest({ model: 'm', max_tokens: 9, messages: back })
    expect(request && converse.provider.writeRequest(request)).toMatchObject({
      messages: [{ role: 'assistant', content }],
    })
    expect(request && messages.provider.writeRequest(request)).toMatchObject({
      messages: [{ content: [{ citations }] }],
    })
  }
})

test('leaves out a web citation for a messages caller, because Anthropic only accepts sealed ones', () => {
  const url = {
    type: 'url_citation',
    url_citation: { url: 'https://u.example', title: 't', start_index: 0, end_index: 1 },
  }
  const message = { content: 'x', annotations: [url] }
  const answer = chat.provider.readAnswer({ choices: [{ message, finish_reason: 'stop' }] })
  expect(messages.caller?.writeAnswer(answer, asked).content).toEqual([{ type: 'text', text: 'x' }])
  const frame = JSON.stringify({ choices: [{ delta: message, finish_reason: 'stop' }] })
  const writer = messages.caller?.streamWriter(asked)
  const stream = chat.provider
    .streamReader()
    .frame(null, frame)
    .map((event) => writer?.event(event))
    .join('')
  expect(stream).toContain('text_delta')
  expect(stream).not.toContain('citations_delta')
})
