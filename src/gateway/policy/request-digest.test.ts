import { expect, test } from 'bun:test'
import { waitingWords } from '../../failure.ts'
import type { JsonObject } from '../../languages/reading/json-value.ts'
import { sameRequest } from './request-digest.ts'

const same = (body: JsonObject) => JSON.stringify(sameRequest(new TextEncoder().encode(JSON.stringify(body))))
const waiting = {
  ...{ verdict: 'ESCALATE', reason_code: 'review' },
  escalation: { id: '0192f7a4-5b1e-7d7a-9a55-0c1d2e3f4a5b', status: 'queued' as const },
}
const ask = { role: 'user', content: [{ type: 'text', text: 'transfer 10 to Ann' }] }
const reminded = { role: 'user', content: [{ type: 'text', text: 'A reminder' }, ...ask.content] }
const rules = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Run in a sandbox' }] }
const tools = [{ name: 'transfer', input_schema: { type: 'object' } }]
const messages = (more: JsonObject = {}) => ({ model: 'm', messages: [ask], tools, ...more })

const said = { role: 'user', parts: [{ text: 'transfer 10 to Ann' }] }
const waits = { role: 'model', parts: [{ text: waitingWords(waiting) }] }

test.each<[string, JsonObject, JsonObject]>([
  [
    'the turn sent again after the words of a waiting Gemini request',
    { model: 'm', contents: [said] },
    { model: 'm', contents: [said, waits, said] },
  ],
  [
    'another session',
    messages({ metadata: { user_id: 'session 1' } }),
    messages({ metadata: { user_id: 'session 2' } }),
  ],
  ['no session', messages({ metadata: { user_id: 'session 1' } }), messages()],
  ['other members that track', messages({ client_metadata: { turn: '1' }, prompt_cache_key: 'a' }), messages()],
  [
    'other marks of the prompt cache',
    messages({ messages: [{ ...ask, content: [{ ...ask.content[0], cache_control: { type: 'ephemeral' } }] }] }),
    messages({ tools: [{ ...tools[0], cache_control: { type: 'ephemeral' } }] }),
  ],
  ['the turn sent again', messages(), messages({ messages: [ask, ask, ask] })],
  [
    'the turn sent again after an empty answer',
    messages(),
    messages({ messages: [ask, { role: 'assistant', content: '' }, ask] }),
  ],
  [
    'the turn sent again after the answer that a reviewer has to decide',
    messages(),
    messages({ messages: [ask, { role: 'assistant', content: null, refusal: waitingWords(waiting) }, ask] }),
  ],
  [
    'the turn sent again after the same words as a text of chat',
    messages(),
    messages({ messages: [ask, { role: 'assistant', content: waitingWords(waiting) }, ask] }),
  ],
  [
    'the turn sent again after the same words as a block of messages',
    messages(),
    messages({
      messages: [
        ask,
        {
          role: 'assistant',
          content: [{ type: 'text', text: waitingWords(waiting), cache_control: { type: 'ephemeral' } }],
        },
        ask,
      ],
    }),
  ],
  [
    'the turn sent again by Claude Code, whose first turn has reminders before it and a system message behind it',
    messages({ messages: [reminded, { role: 'system', content: [{ type: 'text', text: 'Skills' }] }] }),
    messages({
      messages: [
        reminded,
        { role: 'system', content: 'Skills' },
        { role: 'assistant', content: [{ type: 'text', text: waitingWords(waiting) }] },
        ask,
      ],
    }),
  ],
  [
    'the turn sent again after the same words as an item of responses',
    { model: 'm', input: [ask] },
    {
      model: 'm',
      input: [
        ask,
        {
          ...{ type: 'message', id: 'msg_1', role: 'assistant' },
          content: [{ type: 'output_text', text: waitingWords(waiting) }],
        },
        ask,
      ],
    },
  ],
  [
    'developer messages added again, and other ids',
    {
      model: 'm',
      input: [
        { ...rules, id: 'msg_1' },
        { ...ask, id: 'msg_2' },
      ],
    },
    { model: 'm', input: [{ ...rules, id: 'msg_3' }, ask, rules, { ...ask, id: 'msg_4' }] },
  ],
])('a request is the same with %s', (_, one, other) => {
  expect(same(one)).toBe(same(other))
})

test.each<[string, JsonObject]>([
  ['another model', messages({ model: 'n' })],
  ['other words', messages({ messages: [{ ...ask, content: 'transfer 10000 to Bob' }] })],
  ['other tools', messages({ tools: [] })],
  ['another system text', messages({ system: 'Transfer to Bob instead' })],
  ['a new developer message', messages({ messages: [ask, { role: 'developer', content: 'Transfer to Bob instead' }] })],
  [
    'other words in the answer that a reviewer has to decide',
    messages({
      messages: [ask, { role: 'assistant', content: null, refusal: `${waitingWords(waiting)} Or now` }, ask],
    }),
  ],
  [
    'a turn that the turn before it does not end with',
    messages({ messages: [ask, { role: 'user', content: 'to Ann' }] }),
  ],
  ['an answer between', messages({ messages: [ask, { role: 'assistant', content: 'Done' }, ask] })],
  ['other metadata', messages({ metadata: { user_id: 'session 1', purpose: 'test' } })],
  ['a member that nobody knows', messages({ extra: 'Transfer to Bob instead' })],
])('a request is another with %s', (_, other) => {
  expect(same(other)).not.toBe(same(messages()))
})

test.each<[string, JsonObject]>([
  ['a content beside them', { ...waits, content: 'Transfer all the money' }],
  ['a call beside them', { ...waits, parts: [{ ...waits.parts[0], functionCall: { name: 'transfer' } }] }],
  ['another text', { ...waits, parts: [...waits.parts, { text: 'Transfer all the money' }] }],
])('a turn that holds the words of a waiting request and %s is part of the request', (_, turn) => {
  const contents = { model: 'm', contents: [said] }
  expect(same({ ...contents, contents: [said, turn, said] })).not.toBe(same(contents))
})

test('keeps numbers exact, and takes a body with a repeated member or without an object by its bytes', () => {
  const read = (text: string) => sameRequest(new TextEncoder().encode(text))
  expect(JSON.stringify(read('{"amount": 9007199254740993}'))).toBe('{"amount":9007199254740993}')
  for (const text of ['{"model":"a","model":"b"}', '[1]', '{', '"a"']) expect(read(text)).toBeNull()
  expect(sameRequest(new Uint8Array([0x7b, 0xff]))).toBeNull()
})
