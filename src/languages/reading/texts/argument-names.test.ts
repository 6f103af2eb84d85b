/** Names of members that a model writes in a tool's arguments: found in a whole answer as they are in a stream. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../../chat/dialect.ts'
import type { Dialect } from '../../dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { framesOf, openNext, start } from '../../testing/streams.ts'
import type { JsonObject } from '../json-value.ts'

const mark = 'MARKED'
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('other', mark, null, 3),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', `a ${mark}`, mark, 'input', 'type'), tie('value'), { maxKeys: 3 }),
  ),
}))
const given = fc.dictionary(fc.constantFrom('a', `a ${mark}`, mark), anything, { minKeys: 1, maxKeys: 3 })

/** An answer's part as it stands in the whole, and in a frame. */
type Places = readonly [whole: (part: JsonObject) => JsonObject, frame: (part: JsonObject) => JsonObject]
type Call = readonly [Dialect, Places, (input: JsonObject) => JsonObject]

const inChat: Places = [
  (part) => ({ choices: [{ index: 0, message: { role: 'assistant', ...part } }] }),
  (part) => ({ choices: [{ index: 0, delta: part }] }),
]
const inResponses: Places = [
  (part) => ({ output: [part] }),
  (part) => ({ type: 'response.output_item.done', output_index: 0, item: part }),
]
const inMessages: Places = [
  (part) => ({ content: [part] }),
  (part) => ({ type: 'content_block_start', index: 0, content_block: part }),
]
const calls: readonly Call[] = [
  [
    chat,
    inChat,
    (args) => ({ tool_calls: [{ index: 0, type: 'function', function: { name: 'f', arguments: args } }] }),
  ],
  [chat, inChat, (input) => ({ tool_calls: [{ index: 0, type: 'custom', custom: { name: 'f', input } }] })],
  [chat, inChat, (args) => ({ function_call: { name: 'f', arguments: args } })],
  [responses, inResponses, (args) => ({ type: 'function_call', name: 'f', arguments: args })],
  [responses, inResponses, (input) => ({ type: 'custom_tool_call', name: 'f', input })],
  [messages, inMessages, (input) => ({ type: 'tool_use', name: 'f', input })],
  [messages, inMessages, (input) => ({ type: 'server_tool_use', name: 'f', input })],
]

for (const [dialect, [whole, frame], call] of calls) {
  test(JSON.stringify(whole(call({ a: 1 }))), () => {
    fc.assert(
      fc.property(given, (input) => {
        const answer = structuredClone(whole(call(input)))
        for (const slot of dialect.answerText(answer)) slot.replace(slot.text.replaceAll(mark, 'x'))
        expect(JSON.stringify(answer)).not.toContain(mark)

        const [sent] = framesOf(Buffer.from(`data: ${JSON.stringify(frame(call(input)))}\n\n`))
        const opened = sent === undefined ? null : openNext(dialect.reader(start), sent)
        for (const piece of opened?.pieces ?? []) piece.replace(piece.text.replaceAll(mark, 'x'))
        expect(Buffer.from(opened?.bytes() ?? []).toString()).not.toContain(mark)
      }),
      { numRuns: 200 },
    )
  })
}
