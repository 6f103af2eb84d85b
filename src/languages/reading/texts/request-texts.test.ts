/**
 * No string of a request that a provider could read as prose escapes the policies, whatever shape it stands in: random
 * bodies of every JSON family with a marked text at random places; after all found texts are replaced, the mark is only
 * where the list says that nothing is read.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { speech } from '../../audio/speech.ts'
import { chat } from '../../chat/dialect.ts'
import { completions } from '../../completions/dialect.ts'
import type { Dialect } from '../../dialect.ts'
import { embeddings } from '../../embeddings/dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { moderations } from '../../moderations/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import { unread, unreadMembers } from './request-texts.ts'

const mark = 'MARKED'

const unreadWithin = new Set(unread.flatMap((entry) => (entry.as === undefined ? entry.within : [])))
const described = new Set([
  ...['tools', 'tool_choice', 'functions', 'response_format', 'text', 'prompt', 'mcp_servers', 'reasoning', 'thinking'],
])

/** What is left of a body without what is deliberately not read. */
function readable(body: JsonObject): JsonObject {
  const without = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(without)
    if (!isObject(value)) return value
    const left = Object.entries(value).filter(([key]) => !unreadWithin.has(key))
    return Object.fromEntries(left.map(([key, inner]) => [key, without(inner)]))
  }
  const isRead = ([member]: [string, unknown]) => !unreadMembers.has(member)
  return Object.fromEntries(
    Object.entries(body)
      .filter(isRead)
      .map(([member, value]) => [member, described.has(member) ? without(value) : value]),
  )
}

/** Names that the languages have, so that what they mean is met at every place, and some that none has. */
const names = fc.constantFrom(
  ...['role', 'content', 'text', 'type', 'name', 'input', 'arguments', 'function', 'custom', 'description', 'id', '0'],
  ...['parameters', 'properties', 'enum', 'required', 'source', 'data', 'url', 'cache_control', 'ttl', 'note', 'title'],
  ...[
    'summary',
    'output',
    'tool_calls',
    'schema',
    'format',
    'variables',
    'signature',
    'headers',
    'new_member',
    'a/b#1',
  ],
  ...['logprobs', 'authorization', 'thinking', 'server_url', '$ref', '$comment', '', '__proto__'],
)
const words = fc.constantFrom(`a ${mark} b`, `a ${mark} b`, 'other', 'text', 'tool_use', 'function', 'object', '')
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    words,
    fc.constantFrom(null, 3, true),
    fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
    fc.dictionary(names, tie('value'), { minKeys: 1, maxKeys: 4 }),
  ),
}))

const families: readonly [Dialect, readonly string[]][] = [
  [chat, ['messages', 'prediction', 'tools', 'tool_choice', 'functions', 'response_format', 'stop', 'metadata']],
  [responses, ['input', 'instructions', 'prompt', 'tools', 'tool_choice', 'text', 'response_format', 'metadata']],
  [messages, ['system', 'messages', 'tools', 'tool_choice', 'mcp_servers', 'metadata', 'stop_sequences']],
  [completions, ['prompt', 'suffix', 'stop']],
  [embeddings, ['input', 'user']],
  [moderations, ['input']],
  [speech, ['input', 'instructions', 'text']],
]

/** Replaces the mark in every text that is found; each is named by a member of the body. */
function withoutMark(dialect: Dialect, body: JsonObject): JsonObject {
  const changed = structuredClone(body)
  for (const slot of dialect.requestText(changed)) {
    expect(Object.keys(body)).toContain(slot.member)
    if (slot.text.includes(mark)) slot.replace(slot.text.replaceAll(mark, ''))
  }
  return changed
}

describe('every text of a request is found, in any shape', () => {
  for (const [dialect, members] of families) {
    const member = fc.constantFrom(
      ...members,
      'model',
      'new_member',
      'cache_control',
      'arguments',
      'a/b#1',
      'thinking',
      'reasoning',
    )
    test(dialect.family, () => {
      fc.assert(
        fc.property(fc.dictionary(member, anything, { minKeys: 1, maxKeys: 3 }), (body) => {
          expect(JSON.stringify(readable(withoutMark(dialect, body)))).not.toContain(mark)
        }),
        { numRuns: 500 },
      )
    })
  }
})

test('finds a one-word text in every shape that replaces a list', () => {
  const shapes = [mark, [mark], [[mark]], { 0: mark }, { 0: { role: 'user', content: mark } }, [{ 0: { text: mark } }]]
  const bodies: [Dialect, string][] = [
    ...(['messages', 'prediction', 'tools', 'functions'] as const).map((member): [Dialect, string] => [chat, member]),
    ...(['system', 'messages', 'tools'] as const).map((member): [Dialect, string] => [messages, member]),
    ...(['instructions', 'input', 'tools', 'prompt'] as const).map((member): [Dialect, string] => [responses, member]),
    ...([completions, embeddings, moderations, speech] as const).map((dialect): [Dialect, string] => [
      dialect,
      dialect === completions ? 'prompt' : 'input',
    ]),
  ]
  for (const [dialect, member] of bodies) {
    for (const shape of shapes) {
      expect(JSON.stringify(withoutMark(dialect, { [member]: shape }))).not.toContain(mark)
    }
  }
  for (const content of shapes) {
    const body = { messages: [{ role: 'user', content, note: mark }] }
    for (const dialect of [chat, messages]) expect(JSON.stringify(withoutMark(dialect, body))).not.toContain(mark)
    const input = { input: [{ role: 'user', content, note: mark }] }
    expect(JSON.stringify(withoutMark(responses, input))).not.toContain(mark)
  }
})

test('leaves only the listed members of tools and settings unread', () => {
  const server = { type: 'mcp', server_url: `https://h/${mark}`, headers: { Authorization: `Bearer ${mark}` } }
  const parameters = { type: 'object', properties: { headers: { $ref: `#/$defs/${mark}` } }, required: [mark] }
  const body = {
    model: mark,
    reasoning: { effort: 'high', summary: 'concise' },
    tool_choice: 'auto',
    tools: [server, { type: 'function', name: 'f', parameters }],
  }
  expect(withoutMark(responses, body)).toEqual(body)
  expect(responses.requestText(body).map(({ text }) => text)).toEqual(['f'])
  const schema = { $comment: mark, properties: { headers: { description: mark } }, required: [`${mark} is needed`] }
  const told = { tools: [{ type: 'function', name: mark, parameters: schema, user_location: { city: mark } }] }
  expect(JSON.stringify(withoutMark(responses, told))).not.toContain(mark)
})

test('reads unknown members among cache settings, but not the settings', () => {
  const part = (control: JsonObject) => ({
    cache_control: control,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'said', cache_control: control }] }],
    tools: [{ name: 'f', cache_control: control }],
  })
  for (const dialect of [chat, messages]) {
    const plain = dialect.requestText(part({ type: 'ephemeral', ttl: '1h' })).map(({ text }) => text)
    expect(plain).toEqual(['said', 'f'])
    const told = withoutMark(dialect, part({ type: 'ephemeral', ttl: '5m', note: mark, deep: [{ more: mark }] }))
    expect(JSON.stringify(told)).not.toContain(mark)
  }
})

test('reads a schema property named arguments as a description', () => {
  const parameters = { type: 'object', properties: { arguments: { type: 'array', description: 'told' } } }
  const slots = responses.requestText({ tools: [{ type: 'function', name: 'f', parameters }] })
  expect(slots.map(({ kind, text }) => [kind, text])).toEqual([
    ['name', 'f'],
    ['content', 'told'],
  ])
})
