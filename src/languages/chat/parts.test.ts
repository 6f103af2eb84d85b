/** What is held back of a chat stream leaves in the part that it came in. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventsOf } from '../testing/clients.ts'
import { framesOf, start } from '../testing/streams.ts'
import { collected } from '../translation/collect-stream.ts'
import { inParts } from './parts.ts'
import { chatReader } from './stream-reader.ts'
import { chat } from './translation/language.ts'

const frame = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`

/** The stream with its words, and its arguments but for where they begin, held back until their channel ends. */
function heldBack(stream: string): Buffer {
  const reader = chatReader(start)
  const channels = inParts(reader)
  const held = new Map<string, string>()
  const passed: Uint8Array[] = []
  for (const each of framesOf(Buffer.from(stream))) {
    const { event, data } = each
    if (data !== null) reader.frame({ event, data })
    const opened = channels.open(each)
    if (opened === null) throw new Error('Every frame of this stream is opened')
    const texts = opened.pieces.filter(({ whole, kind }) => !whole && kind !== 'name')
    const last = new Map(texts.map((piece) => [piece.channel, piece]))
    for (const piece of texts) {
      const text = (held.get(piece.channel) ?? '') + piece.text
      const leaves = opened.ends.includes(piece.channel) && last.get(piece.channel) === piece
      const begins = piece.kind === 'tool_arguments' && !held.has(piece.channel) ? 1 : 0
      piece.replace(leaves ? text : text.slice(0, begins))
      held.set(piece.channel, leaves ? '' : text.slice(begins))
    }
    for (const channel of opened.ends) {
      const text = held.get(channel) ?? ''
      if (text !== '') passed.push(channels.delta(channel, text))
      held.delete(channel)
    }
    passed.push(opened.bytes())
  }
  return Buffer.concat(passed)
}

const partsOf = (stream: string | Buffer) =>
  collected(eventsOf(chat.provider, Buffer.from(stream))).parts.map((part) =>
    part.kind === 'tool_call' ? [part.kind, part.arguments] : [part.kind, 'text' in part ? part.text : ''],
  )

const members = [
  ['in members of the delta', ['content', 'reasoning_content', 'refusal', 'tool_calls']],
  ['in parts of its content', ['content', 'thinking', 'refusal', 'tool_calls']],
] as const

/** A delta whose thoughts stand among the parts of its content. */
function inContent({ thinking, content, ...words }: Readonly<Record<string, string>>): object {
  if (thinking === undefined) return content === undefined ? words : { ...words, content }
  const text = content === undefined ? [] : [{ type: 'text', text: content }]
  return { ...words, content: [{ type: 'thinking', thinking: [{ type: 'text', text: thinking }] }, ...text] }
}

test.each(members)('splits an answer with thoughts %s into the same parts for any order and frames', (_, names) => {
  const member = fc.constantFrom(...names)
  const said = fc.dictionary(member, fc.stringMatching(/^[a-z]{1,3}$/), { minKeys: 1, maxKeys: 3 })
  fc.assert(
    fc.property(fc.array(said, { minLength: 1, maxLength: 12 }), (frames) => {
      let calls = 0
      const deltas = frames.map(({ tool_calls: name, ...words }) => {
        if (name === undefined) return inContent(words)
        const index = calls++
        const call = { index, id: `call_${index}`, type: 'function', function: { name, arguments: '{"a":1}' } }
        return { ...inContent(words), tool_calls: [call] }
      })
      const stream = [...deltas.map((delta) => frame(delta)), frame({}, 'stop'), 'data: [DONE]\n\n'].join('')
      expect(partsOf(heldBack(stream))).toEqual(partsOf(stream))
    }),
    { numRuns: 200 },
  )
})
