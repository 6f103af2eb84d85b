import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { editMembers, isRepetitive, jsonMembers, repeatedMember } from './json-members.ts'

test('jsonMembers finds each outermost value where JSON.parse finds it', () => {
  // Names that differ in letter case alone count as one.
  const name = fc.string().map((any) => any.toLowerCase())
  fc.assert(
    fc.property(fc.dictionary(name, fc.jsonValue()), fc.nat({ max: 4 }), (object, indent) => {
      const text = JSON.stringify(object, null, indent)
      const { names, spans, repeated } = jsonMembers(text, 1000)
      expect(repeated).toBe(false)
      const read = names.map((name, index) => [name, JSON.parse(text.slice(...(spans[index] ?? [0, 0])))] as const)
      expect(new Map(read)).toEqual(new Map(Object.entries(JSON.parse(text))))
    }),
  )
})

test('jsonMembers notices a name given twice, however it is written', () => {
  expect(jsonMembers('{"model":"a","model":"b"}', 64).repeated).toBe(true)
  expect(jsonMembers('{"model":"a","mod\\u0065l":"b"}', 64).repeated).toBe(true)
  expect(jsonMembers('{"a":{"model":1},"model":2}', 64).repeated).toBe(false)
  expect(jsonMembers('{"a":"\\"model\\":","model":2}', 64).repeated).toBe(false)
})

test('jsonMembers notices it among few names and among many', () => {
  const name = fc.tuple(fc.constantFrom('a', 'b', 'model', 'É'), fc.integer({ min: 0, max: 30 }), fc.boolean())
  fc.assert(
    fc.property(fc.array(name, { maxLength: 24 }), (chosen) => {
      const names = chosen.map(([word, number, upper]) => (upper ? `${word}${number}`.toUpperCase() : word + number))
      const text = `{${names.map((each) => `${JSON.stringify(each)}:{"a0":1}`).join()}}`
      const distinct = new Set(names.map((each) => each.toLowerCase()))
      expect(jsonMembers(text, 64)).toMatchObject({ names, repeated: distinct.size < names.length })
    }),
  )
})

test('jsonMembers refuses nesting beyond the limit', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(() => jsonMembers(nested(64), 64)).not.toThrow()
  expect(() => jsonMembers(nested(65), 64)).toThrow(RangeError)
})

test('jsonMembers ends on anything, valid JSON or not', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\\\', ',', ':', 'a', ' ') }), (text) => {
      jsonMembers(text, 1000)
    }),
  )
  jsonMembers('{"a":"\\', 64)
})

test('editMembers replaces, removes and adds members and keeps every other byte', () => {
  const text = '{ "a" : 1.0,\n"model":  "alias" , "z":"é" }'
  const edit = (edits: [string, string | null][]) => editMembers(text, jsonMembers(text, 64), new Map(edits))
  expect(edit([['model', '"real"']])).toBe('{ "a" : 1.0,\n"model":  "real" , "z":"é" }')
  expect(edit([['a', null]])).toBe('{ "model":  "alias" , "z":"é" }')
  expect(edit([['model', null]])).toBe('{ "a" : 1.0 , "z":"é" }')
  expect(edit([['z', null]])).toBe('{ "a" : 1.0,\n"model":  "alias" }')
  expect(edit([['none', null]])).toBe(text)
  expect(edit([['new', '[1]']])).toBe('{ "a" : 1.0,\n"model":  "alias" , "z":"é","new":[1] }')
  const emptied: [string, null][] = [
    ['a', null],
    ['model', null],
    ['z', null],
  ]
  expect(edit(emptied)).toBe('{  }')
  expect(edit([...emptied, ['b', '2'], ['c', '3']])).toBe('{ "b":2,"c":3 }')
})

/** White space that JSON allows, between all tokens of a text that was written without any. */
const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/)

test('editMembers returns the edited object and keeps the bytes of the other members', () => {
  const names = fc.oneof(fc.constantFrom('model', 'session_id', '__proto__', 'a"b', ''), fc.string())
  const member = fc.tuple(names, fc.jsonValue(), fc.option(fc.jsonValue()), fc.boolean(), space, space, space, space)
  const added = fc.dictionary(fc.constantFrom('added', 'model', 'more'), fc.jsonValue())
  fc.assert(
    fc.property(fc.uniqueArray(member, { selector: ([name]) => name }), added, space, (entries, additions, end) => {
      const written = entries.map(([name, value, , , ...gaps]) => {
        const [one, two, three, four] = gaps
        return `${one}${JSON.stringify(name)}${two}:${three}${JSON.stringify(value)}${four}`
      })
      const text = `${end}{${written.join(',')}${written.length === 0 ? end : ''}}${end}`
      const edits = new Map<string, string | null>()
      for (const [name, , edit, edited] of entries)
        if (edited) edits.set(name, edit === null ? null : JSON.stringify(edit))
      for (const [name, value] of Object.entries(additions)) edits.set(name, JSON.stringify(value))
      const expected = new Map<string, unknown>(
        entries.map(([name, value]) => [name, JSON.parse(JSON.stringify(value))]),
      )
      for (const [name, json] of edits) {
        if (json === null) expected.delete(name)
        else expected.set(name, JSON.parse(json))
      }

      const result = editMembers(text, jsonMembers(text, 1000), edits)

      expect(new Map(Object.entries(JSON.parse(result)))).toEqual(expected)
      expect(Object.keys(JSON.parse(result)).length).toBe(expected.size)
      for (const [index, [name]] of entries.entries()) {
        if (!edits.has(name)) expect(result).toContain((written[index] ?? '').trim())
      }
      expect(result).toStartWith(`${end}{`)
      expect(result).toEndWith(`}${end}`)
      if (edits.size === 0) expect(result).toBe(text)
    }),
  )
})

test('isRepetitive finds a member given twice at any depth, also with colons in texts', () => {
  for (const [text, repetitive] of [
    ['{"a":1,"b":{"c":[{"d":2}]}}', false],
    ['{"a":"x:y::", "b":":"}', false],
    ['{"a":1,"a":2}', true],
    ['{"a":":","b":{"c":1,"c":"x"}}', true],
    ['{"b":[{"c":"::::"},{"c":1 , "c" : 2}]}', true],
  ] as const) {
    expect([text, isRepetitive(text, JSON.parse(text))]).toEqual([text, repetitive])
  }
})

test('repeatedMember names the path of a member that is given twice, however deep and however written', () => {
  const cases: [text: string, path: string[] | null][] = [
    ['{"roles":1,"roles":2}', ['roles']],
    ['{"roles":1,"\\u0072oles":2}', ['roles']],
    ['{"a":[{"b":1},{"b":{"c":1,"d":[],"c":2}}]}', ['a', '1', 'b', 'c']],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
    ['{"a":"\\"b\\":","b":{"a":"{"},"c":["a","a"]}', null],
    ['{"a":1,"A":2}', null],
    ['[{"a":1},{"a":1}]', null],
  ]
  for (const [text, path] of cases) {
    expect([text, repeatedMember(text)]).toEqual([text, path])
    expect(isRepetitive(text, JSON.parse(text))).toBe(path !== null)
  }
})

test('repeatedMember finds a repetition exactly where one was put', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat({ max: 3 }), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(repeatedMember(text)).toBeNull()
      expect(repeatedMember(`{"x":${text},"y":[0,{"z":1,"q":${text},"z":2}]}`)).toEqual(['y', '1', 'z'])
    }),
  )
})
