/** Where a response says its request again: what the caller said itself is no answer, and all else is read. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { responses } from '../../responses/dialect.ts'
import { framesOf, openNext, start } from '../../testing/streams.ts'
import type { JsonObject } from '../json-value.ts'
import { RequestEcho } from './request-echo.ts'

const mark = 'MARKED'
const members = [
  ...['input', 'instructions', 'metadata', 'user', 'safety_identifier', 'tools', 'tool_choice', 'text', 'prompt'],
  ...['reasoning', 'truncation', 'previous_response_id', 'conversation', 'incomplete_details'],
]
const names = fc.constantFrom(
  'text',
  'description',
  'summary',
  'format',
  'schema',
  'id',
  'name',
  'arguments',
  'new',
  '0',
)
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    fc.constantFrom(`a ${mark} b`, `${mark} said`, 'other', 'auto', null, 3),
    fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
    fc.dictionary(names, tie('value'), { minKeys: 1, maxKeys: 3 }),
  ),
}))
const echo = fc.dictionary(fc.constantFrom(...members), anything, { minKeys: 1, maxKeys: 4 })

/** The same response whole and at the end of a stream, once the mark was taken out of all texts that are found. */
function withoutMark(response: JsonObject, asked: RequestEcho): JsonObject[] {
  const whole = structuredClone(response)
  for (const slot of responses.answerText(whole, asked)) {
    expect(Object.keys(response)).toContain(slot.member)
    slot.replace(slot.text.replaceAll(mark, ''))
  }
  return [whole, ...['response.created', 'response.completed'].map((type) => passed({ type, response }, asked))]
}

function passed(event: JsonObject, asked: RequestEcho): JsonObject {
  const [frame] = framesOf(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  if (frame === undefined) throw new Error('There is no frame')
  const opened = openNext(responses.reader({ ...start, asked }), frame)
  for (const piece of opened?.pieces ?? []) piece.replace(piece.text.replaceAll(mark, ''))
  return JSON.parse(
    Buffer.from(opened?.bytes() ?? [])
      .toString()
      .slice('data: '.length),
  ).response
}

test("reads a provider's text in a member that repeats the request, whole and streamed", () => {
  fc.assert(
    fc.property(echo, (said) => {
      const response = { object: 'response', output: [], ...said }
      for (const left of withoutMark(response, new RequestEcho({ input: 'other' }))) {
        expect(JSON.stringify(left)).not.toContain(mark)
      }
    }),
    { numRuns: 500 },
  )
})

test("does not read the request's own text where it is repeated", () => {
  fc.assert(
    fc.property(echo, (said) => {
      const response = { object: 'response', output: [], ...said }
      // Arguments are one text as they stand, whatever is around them.
      for (const left of withoutMark(response, new RequestEcho({ model: 'm', asked: [said] }))) {
        expect(left).toEqual(response)
      }
    }),
    { numRuns: 500 },
  )
})

test('does not read settings that a provider fills in', () => {
  const parameters = { type: 'object', properties: { a: { type: 'string', description: 'told' } } }
  const asked = new RequestEcho({ instructions: 'be', tools: [{ type: 'function', name: 'f', parameters }] })
  const response = {
    ...{ instructions: 'be', metadata: {}, truncation: 'disabled', tool_choice: 'auto', previous_response_id: null },
    ...{
      reasoning: { effort: 'medium', summary: 'detailed' },
      text: { format: { type: 'text' }, verbosity: 'medium' },
    },
    tools: [
      { type: 'function', name: 'f', strict: true, parameters: { ...parameters, required: ['a'] } },
      { type: 'web_search', search_context_size: 'medium', user_location: { type: 'approximate', country: 'US' } },
    ],
    incomplete_details: { reason: 'max_output_tokens' },
    output: [],
  }
  const kinds = responses.answerText(response, asked).map(({ kind, text }) => [kind, text])
  expect(kinds).toEqual([['name', 'US']])
})
