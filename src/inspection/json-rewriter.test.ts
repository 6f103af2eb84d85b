import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { passWhole } from './channel.ts'
import { personalData } from './detectors/personal-data/personal-data.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import { cutAt, feedPieces, ruleOf } from './testing/passing.ts'

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const terms = (...list: string[]) => termDetector(list, '#', plain)
const redacted = (list: readonly string[], ...pieces: string[]) =>
  feedPieces([ruleOf(terms(...list), 'redact')], pieces, 'tool_arguments').text

test('finds escaped spellings in strings and keys', () => {
  expect(redacted(['a@b.co'], '{"to":"x a\\u0040b.co y"}')).toBe('{"to":"x [#] y"}')
  expect(redacted(['a@b.co'], '{"a\\u0040b\\u002eco":1}')).toBe('{"[#]":1}')
  expect(redacted(['line two'], '{"x":"line\\ntwo"}')).toBe('{"x":"[#]"}')
  expect(redacted(['😀'], '{"x":"\\ud83d\\ude00!"}')).toBe('{"x":"[#]!"}')
})

test('does not match the letters of an escape and never splits one', () => {
  const email = ruleOf(patternDetector(personalData.email, { streaming: true, paramOf: String }), 'redact')
  for (const [json, out] of [
    ['{"a":"\\ud83d\\ude00bob@x.com"}', '{"a":"\\ud83d\\ude00[EMAIL]"}'],
    ['{"a":"Contact:\\nbob@x.com"}', '{"a":"Contact:\\n[EMAIL]"}'],
    ['{"a":"bob@x.com\\tbob@x.com\\u000a"}', '{"a":"[EMAIL]\\t[EMAIL]\\u000a"}'],
  ] as const) {
    expect(feedPieces([email], [json], 'tool_arguments').text).toBe(out)
    expect(feedPieces([email], [...json], 'tool_arguments').text).toBe(out)
  }
  const blocked = feedPieces([ruleOf(terms('nope'), 'block')], ['{"a":"x\\nope"}'], 'tool_arguments')
  expect(blocked).toMatchObject({ stop: null, text: '{"a":"x\\nope"}', findings: [] })
  expect(redacted(['u0041'], '{"x":"a\\u0041b"}')).toBe('{"x":"a\\u0041b"}')
})

test('reports a finding at its position in the original arguments', () => {
  const json = '{"a":"\\ud83d\\ude00😀b\\u006fb!","n":1234}'
  const { findings } = feedPieces([ruleOf(terms('bob', '23'), 'redact')], [...json], 'tool_arguments')
  expect(findings.map(({ start, end }) => json.slice(start, end))).toEqual(['b\\u006fb', '1234'])
})

test('turns a number into a string when part of it is found', () => {
  expect(redacted(['111'], '{"n":-21114.5e3,"m":12}')).toBe('{"n":"[#]","m":12}')
  expect(redacted(['true'], '[true, false]')).toBe('["[#]", false]')
})

test('finds a number as it is printed, however it is spelled and split', () => {
  const card = ruleOf(patternDetector(personalData.card, { streaming: true, paramOf: String }), 'redact')
  for (const [json, out] of [
    ['{"c":4.111111111111111e15}', '{"c":"[CARD]"}'],
    ['[1.5e3, 0.4111111111111111E+16,4111111111111111.0 ]', '[1.5e3, "[CARD]","[CARD]" ]'],
    ['{"c":41111111111111110e-1,"d":"4.111111111111111e15"}', '{"c":"[CARD]","d":"4.111111111111111e15"}'],
    ['{"c":1.0, "d":[-0,1E5,2.50,12345678901234567890123]}', '{"c":1.0, "d":[-0,1E5,2.50,12345678901234567890123]}'],
  ] as const) {
    expect(feedPieces([card], [json], 'tool_arguments').text).toBe(out)
    for (let at = 1; at < json.length; at++) {
      expect(feedPieces([card], cutAt(json, [at]), 'tool_arguments').text).toBe(out)
    }
    expect(feedPieces([card], [...json], 'tool_arguments').text).toBe(out)
    expect(passWhole([card], { kind: 'tool_arguments', role: null, place: 'text', text: json }, []).text).toBe(out)
  }
})

test('finds a printed number after the words before it, at its spelled position', () => {
  const json = '{"account":1.2e3,"other":1.2e3}'
  const { text, findings } = feedPieces([ruleOf(terms('account":1200'), 'redact')], [...json], 'tool_arguments')
  expect(text).toBe('{"account":"[#]","other":1.2e3}')
  expect(findings.map(({ start, end }) => json.slice(start, end))).toEqual(['1.2e3'])
})

test('replaces a number by a value made of its digits', () => {
  const rule = ruleOf(terms('1200'), 'redact', { replacement: (_found, text) => `<${text}>` })
  expect(feedPieces([rule], ['{"n":1.2e3}'], 'tool_arguments').text).toBe('{"n":"<1200>"}')
})

test('sends nothing after a found number that is too long to hold', () => {
  const json = `{"n":0.${'0'.repeat(9000)}12e9002,"m":1}`
  const whole = feedPieces([ruleOf(terms('12'), 'block')], [json.replace('12e9002', '13e9002')], 'tool_arguments')
  expect(whole.stop).toBeNull()
  const { text, stop } = feedPieces(
    [ruleOf(terms('1200'), 'redact')],
    cutAt(json.replace('12e9002', '12e9004'), [5000]),
    'tool_arguments',
  )
  expect(stop?.verdict).toBe('block')
  expect(text).not.toContain('"m"')
})

test('keeps the structure between strings that a match spans', () => {
  expect(redacted(['a","b'], '["a","b","c"]')).toBe('["[#]","","c"]')
})

test('treats malformed arguments as plain text', () => {
  expect(redacted(['cat'], 'SELECT "cat\\', 'cat" 12')).toBe('SELECT "[#]\\[#]" 12')
})

test('sends the arguments before a blocked match and nothing of the match', () => {
  const pieces = [...'{"a":"fine","b":"ba\\u0064 word"}']
  const passed = feedPieces([ruleOf(terms('bad'), 'block')], pieces, 'tool_arguments')
  expect(passed.text).toBe('{"a":"fine","b":"')
  expect(passed.stop?.verdict).toBe('block')
})

test('sends text that is no part of a match with the piece that brought it', () => {
  const passed = feedPieces([ruleOf(terms('zebra'), 'redact')], ['{"a":"fi', 'ne ze', 'ro"}'], 'tool_arguments')
  expect(passed.parts).toEqual(['{"a":"fi', 'ne ', 'zero"}', ''])
})

const characters = ['a', 'b', 'c', ' ', '1', '2', '"', '\\', '\n', 'é', '😀', '\u200b', '/', 'u']
const string = fc.array(fc.constantFrom(...characters), { maxLength: 8 }).map((all) => all.join(''))
const value = fc.letrec((tie) => ({
  any: fc.oneof({ maxDepth: 3 }, string, fc.integer(), fc.boolean(), fc.constant(null), tie('list'), tie('object')),
  list: fc.array(tie('any'), { maxLength: 3 }),
  object: fc.dictionary(string, tie('any'), { maxKeys: 3 }),
})).object
const list = fc.array(
  fc
    .array(fc.constantFrom('a', 'b', 'c', '1', '2', ' ', 'é', '😀', 'u'), { minLength: 1, maxLength: 3 })
    .map((all) => all.join('')),
  { minLength: 1, maxLength: 4 },
)

/** JSON text of which some characters are written as escapes. */
const written = fc.tuple(value, fc.infiniteStream(fc.integer({ min: 0, max: 3 }))).map(([object, dice]) =>
  JSON.stringify(object).replace(/[abcé12 ]/g, (character, offset: number, whole: string) => {
    const [roll] = dice.take(1)
    return roll === 0 && inString(whole, offset)
      ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
      : character
  }),
)

function inString(json: string, offset: number): boolean {
  let quoted = false
  for (let index = 0; index < offset; index++) {
    if (json[index] === '\\') index++
    else if (json[index] === '"') quoted = !quoted
    if (index >= offset) return false
  }
  return quoted && json[offset - 1] !== '\\' && !/\\u[0-9a-f]{0,3}$/.test(json.slice(0, offset))
}

/** Every string of a value, keys too, as a reader of the parsed arguments sees them; numbers by their digits. */
function spelled(parsed: unknown): string[] {
  if (Array.isArray(parsed)) return parsed.flatMap(spelled)
  if (typeof parsed === 'object' && parsed !== null) {
    return Object.entries(parsed).flatMap(([key, inner]) => [key, ...spelled(inner)])
  }
  return [String(parsed)]
}

/** Arguments, or a beginning of them, with each escape as what it stands for. */
const said = (json: string) =>
  json.replace(/\\(?:u[0-9a-f]{4}|[^u])/g, (sequence) => String(JSON.parse(`"${sequence}"`)))

const visible = (text: string) => text.replaceAll('\u200b', '').normalize('NFKC').toLowerCase().replaceAll('\n', ' ')

test('writes redacted arguments that parse, hold no term and are the same at every split', () => {
  const result = fc.check(
    fc.property(written, list, fc.array(fc.nat({ max: 300 }), { maxLength: 12 }), (json, found, cuts) => {
      const out = redacted(found, ...cutAt(json, cuts))
      expect(out).toBe(redacted(found, json))
      const parsed: unknown = JSON.parse(out)
      for (const text of spelled(parsed)) for (const term of found) expect(visible(text)).not.toContain(term)
      const before = spelled(JSON.parse(json))
      if (!found.some((term) => before.some((text) => visible(text).includes(term)) || json.includes(term))) {
        if (!visible(json).match(new RegExp(found.map((term) => RegExp.escape(term)).join('|')))) expect(out).toBe(json)
      }
    }),
    { numRuns: 500 },
  )
  if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? '')
  console.log(`${result.numRuns} cases: redacted arguments`)
}, 60_000)

/** A value with each of its texts, keys too, as the rule leaves it when it stands by itself. */
function mapped(value: unknown, list: readonly string[]): unknown {
  const left = (text: string) => feedPieces([ruleOf(terms(...list), 'redact')], [text]).text
  if (Array.isArray(value)) return value.map((inner) => mapped(inner, list))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [left(key), mapped(inner, list)]))
  }
  if (typeof value === 'string') return left(value)
  return left(String(value)) === String(value) ? value : '[#]'
}

test('parses redacted arguments to the value with each text redacted', () => {
  const result = fc.check(
    fc.property(written, list, fc.array(fc.nat({ max: 300 }), { maxLength: 12 }), (json, found, cuts) => {
      const read: unknown = JSON.parse(redacted(found, ...cutAt(json, cuts)))
      expect(read).toEqual(mapped(JSON.parse(json), found))
    }),
    { numRuns: 500 },
  )
  if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? '')
}, 60_000)

test('sends a prefix of blocked arguments without a term, the same at every split', () => {
  const card = ruleOf(patternDetector(personalData.card, { streaming: true, paramOf: String }), 'block')
  const result = fc.check(
    fc.property(written, list, fc.array(fc.nat({ max: 300 }), { maxLength: 12 }), (json, found, cuts) => {
      const rules = [ruleOf(terms(...found), 'block'), card]
      const passed = feedPieces(rules, cutAt(json, cuts), 'tool_arguments')
      expect(json.startsWith(passed.text)).toBe(true)
      expect(passed.text).toBe(feedPieces(rules, [json], 'tool_arguments').text)
      for (const term of found) expect(visible(said(passed.text))).not.toContain(term)
    }),
    { numRuns: 400 },
  )
  if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? '')
  console.log(`${result.numRuns} cases: blocked arguments`)
}, 60_000)
