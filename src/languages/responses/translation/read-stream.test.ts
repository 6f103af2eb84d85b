/** Streams of providers that leave out some of the events of a response. */
import { expect, test } from 'bun:test'
import { eventsOf } from '../../testing/clients.ts'
import { collected } from '../../translation/collect-stream.ts'
import { responses } from './language.ts'

const created = { type: 'response.created', response: { id: 'r', model: 'm' } }
const completed = (...output: object[]) => ({ type: 'response.completed', response: { id: 'r', model: 'm', output } })
const message = (type = 'output_text') => ({ type: 'message', id: 'msg', content: [{ type, text: '42' }] })
const place = { output_index: 1, content_index: 0 }
const thought = { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'Hm' }

const partsOf = (...events: { type: string }[]) => {
  const bytes = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const { parts } = collected(eventsOf(responses.provider, Buffer.from(bytes)))
  return parts.map((part) => [part.kind, 'text' in part ? part.text : ''])
}

test('reads a text that comes only when it is done, or only with the last event, and reads it once', () => {
  const done = { type: 'response.output_text.done', ...place, text: '42' }
  const delta = { type: 'response.output_text.delta', ...place, delta: '42' }
  const expected = [
    ['thought', 'Hm'],
    ['text', '42'],
  ]
  expect(partsOf(created, thought, done, completed())).toEqual(expected)
  expect(partsOf(created, thought, completed(message()))).toEqual(expected)
  expect(partsOf(created, thought, delta, done, completed(message()))).toEqual(expected)
  expect(partsOf(created, { ...thought, type: 'response.reasoning.delta' }, completed(message('text')))).toEqual(
    expected,
  )
})
