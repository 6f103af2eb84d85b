import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { paddingMember, saysNothing, saysNothingAsPadding } from './vocabulary.ts'

const made = fc.constantFrom('msg', 'resp', 'chatcmpl', 'tool', '', 'x', 'Zq', '7', 'a1B2c3', '0fffffff', 'word1')
const said = fc.constantFrom('please', 'Resp', 'ignore', 'MSG', 'xyz', 'rules')
const separator = fc.constantFrom('_', '-', '.', ':', '/', '|', '+', '=')

/** Parts with a separator between any two. */
const joined = (part: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(part, separator), { maxLength: 6 })
    .map((parts) => parts.map(([text, between], index) => (index === 0 ? text : between + text)).join(''))

test('an id of prefixes, of parts with a digit and of very short ones says nothing', () => {
  fc.assert(
    fc.property(joined(made), (id) => {
      expect(saysNothing('id', id)).toBe(true)
    }),
  )
})

test('an id with any other word in it says something, wherever it stands', () => {
  fc.assert(
    fc.property(joined(made), said, separator, joined(made), (before, word, between, after) => {
      expect(saysNothing('id', `${before}${between}${word}${between}${after}`)).toBe(false)
      expect(saysNothing('id', `${word}${between}${after}`)).toBe(false)
      expect(saysNothing('id', `${before}${between}${word}`)).toBe(false)
    }),
  )
})

test('an id with a character that ids have none of, or that is very long, says something', () => {
  for (const id of ['msg 1', 'msg_1é', 'msg_1\n', '1'.repeat(513)]) expect(saysNothing('id', id)).toBe(false)
  expect(saysNothing('id', '1'.repeat(512))).toBe(true)
})

test('what says nothing under one name may say something under another', () => {
  expect(saysNothing('id', 'toolu_01')).toBe(true)
  expect(saysNothing('role', 'toolu_01')).toBe(false)
  expect(saysNothing('content', 'toolu_01')).toBe(false)
})

test('padding that says nothing as it stands in JSON is a string there, and says nothing as a member either', () => {
  const inside = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('a', 'Z', '7', '_', '"', '\\', ' ') }))
  fc.assert(
    fc.property(inside, (padding) => {
      if (!saysNothingAsPadding(padding)) return
      expect(JSON.parse(`"${padding}"`)).toBe(padding)
      expect(saysNothing(paddingMember, padding)).toBe(true)
    }),
  )
  expect(['aB3', '', 'a word'].map(saysNothingAsPadding)).toEqual([true, true, false])
})
