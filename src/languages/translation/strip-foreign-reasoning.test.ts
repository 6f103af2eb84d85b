import { expect, test } from 'bun:test'
import type { NeutralAnswer, NeutralPart } from '../neutral.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'
import { asked } from '../testing/clients.ts'
import { languages } from './languages.ts'
import { mayHoldMarks, withoutForeignReasoning } from './strip-foreign-reasoning.ts'

const at = ''
const foreign: readonly NeutralPart[] = [
  { kind: 'thought', text: 'Hm', signature: 'c2ln', redacted: null, language: 'gemini', at },
  { kind: 'thought', text: '', signature: null, redacted: 'aGlk', language: 'gemini', at },
  { kind: 'thought', text: 'unsigned', signature: null, redacted: null, language: 'gemini', at },
]
const spoken: readonly NeutralPart[] = [
  { kind: 'text', text: 'So.', at },
  {
    kind: 'tool_call',
    id: 'call_1',
    name: 'look',
    arguments: '{}',
    signature: { text: 'Y2FsbA', language: 'gemini' },
    at,
  },
]
const answer = (parts: readonly NeutralPart[]): NeutralAnswer => ({
  ...{ id: null, model: 'm', finish: 'tool_calls', stopSequence: null, usage: null },
  parts,
})

/** What a client of the language sends back of an answer. */
function broughtBack(family: 'chat' | 'responses' | 'messages', parts: readonly NeutralPart[]): JsonObject {
  const written = languages[family].caller?.writeAnswer(answer(parts), asked) ?? {}
  if (family === 'responses') return { input: written.output }
  if (family === 'messages') return { messages: [{ role: 'assistant', content: written.content }] }
  const [choice] = Array.isArray(written.choices) ? written.choices : []
  return { messages: [isObject(choice) ? choice.message : null] }
}

for (const family of ['chat', 'responses', 'messages'] as const) {
  test(`${family}: leaves out another provider’s thoughts and keeps the rest`, () => {
    const body = broughtBack(family, [...foreign, ...spoken])
    expect(mayHoldMarks(Buffer.from(JSON.stringify(body)))).toBe(true)
    const without = withoutForeignReasoning(family, body)
    const text = JSON.stringify(without?.value)
    expect(text).not.toContain('gatehouse.')
    expect(text).not.toContain('Hm')
    expect(text).not.toContain('Y2FsbA')
    expect(text).toContain('So.')
    expect(text).toContain('call_1')
  })

  test(`${family}: the provider’s own thoughts stay`, () => {
    const own = foreign.map((part) => (part.kind === 'thought' ? { ...part, language: family } : part))
    const body = broughtBack(family, [...own, ...spoken.slice(0, 1)])
    expect(withoutForeignReasoning(family, body)).toBeNull()
  })
}

for (const family of ['chat', 'responses', 'messages'] as const) {
  test(`${family}: leaves out a message that contains only another provider’s thoughts`, () => {
    expect(withoutForeignReasoning(family, broughtBack(family, foreign))?.value).toEqual([])
  })
}

test('keeps an unmarked call signature, also if the mark is elsewhere in the body', () => {
  const own = { extra_content: { google: { thought_signature: 'Y2FsbA' } } }
  const other = { extra_content: { google: { thought_signature: 'gatehouse.gemini..Y2FsbA' } } }
  const item = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' }
  const said = { role: 'user', content: 'What is gatehouse.gemini..Y2FsbA?' }
  expect(withoutForeignReasoning('responses', { input: [said, { ...item, ...own }] })).toBeNull()
  expect(
    withoutForeignReasoning('responses', {
      input: [
        { ...item, ...own },
        { ...item, ...other },
      ],
    })?.value,
  ).toEqual([{ ...item, ...own }, item])
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
  const calling = (...calls: object[]) => ({ role: 'assistant', content: null, tool_calls: calls })
  expect(withoutForeignReasoning('chat', { messages: [said, calling({ ...call, ...own })] })).toBeNull()
  expect(
    withoutForeignReasoning('chat', { messages: [calling({ ...call, ...own }, { ...call, ...other })] })?.value,
  ).toEqual([calling({ ...call, ...own }, call)])
})
