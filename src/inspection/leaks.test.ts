/**
 * The product's central promise, by properties: whatever the text, the terms, the patterns and the split, what goes out
 * holds nothing of what was found, is otherwise what came in, and is the same for every split. Each property prints how
 * many cases it ran.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { combinedDetector } from './detectors/combined-detector.ts'
import type { Detector } from './detectors/detector.ts'
import { personalDataDetector } from './detectors/personal-data/personal-data.ts'
import { secretDetector } from './detectors/secrets/secret-patterns.ts'
import { secretRules, unprefixedRules } from './detectors/secrets/secret-rules.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { matcherOf } from './detectors/text-matcher.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import { cutAt, feedPieces, ruleOf } from './testing/passing.ts'
import { exampleSecret } from './testing/secrets.ts'

const runs = Number(process.env.GATEHOUSE_PROPERTY_RUNS ?? 500)

function holds<Values extends [unknown, ...unknown[]]>(
  name: string,
  property: fc.IProperty<Values>,
  numRuns: number = runs,
): void {
  test(name, () => {
    const result = fc.check(property, { numRuns })
    if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? name)
    console.log(`${result.numRuns} cases: ${name}`)
  }, 120_000)
}

/** Few characters, so that terms overlap; invisible ones, marks, ligatures, pairs and halves of pairs among them. */
const alphabet = [
  'a',
  'b',
  'A',
  'c',
  ' ',
  '.',
  '1',
  '\u200b',
  '\u0301',
  '\u0323',
  'é',
  'ﬁ',
  'f',
  'i',
  'ß',
  's',
  '각',
  'а',
  '😀',
  '\ud83d',
  '\u{1d41a}',
  '\n',
]
const text = (maxLength: number) =>
  fc.array(fc.constantFrom(...alphabet), { maxLength }).map((characters) => characters.join(''))
const term = fc
  .array(fc.constantFrom('a', 'b', 'A', 'c', ' ', '1', 'é', 'ﬁ', 'f', 'i', 's', 'ss', '각', '😀', 'e\u0301'), {
    minLength: 1,
    maxLength: 4,
  })
  .map((characters) => characters.join(''))
const terms = fc.array(term, { minLength: 1, maxLength: 6 })
const options = fc.record({ caseSensitive: fc.boolean(), homoglyphs: fc.boolean(), wordBoundaries: fc.boolean() })
const places = fc.array(fc.nat({ max: 400 }), { maxLength: 12 })

const placed = (pattern: string, label = 'FOUND') => ({ label, pattern })
const patternSets: readonly (readonly string[])[] = [
  ['ab{1,3}c?'],
  ['(?:a|ab|abc){1,4}', '\\bb\\b'],
  ['a.{0,5}c', 'f[^ ]{1,3}'],
  ['^a', 'c$', '(?<!b)a(?!c)'],
  ['(?i)[a-c]{2,6}1'],
]
const patterns = fc.constantFrom(...patternSets).map((sources) =>
  patternDetector(
    sources.map((source) => placed(source)),
    { streaming: true, paramOf: String },
  ),
)

const detector: fc.Arbitrary<Detector> = fc.oneof(
  fc.tuple(terms, options).map(([list, how]) => termDetector(list, 'TERM', how)),
  patterns,
  fc
    .tuple(terms, options, patterns)
    .map(([list, how, more]) => combinedDetector([termDetector(list, 'TERM', how), more])),
)

holds(
  'a follower tells the same for every split as for the whole text',
  fc.property(detector, text(40), places, (found, source, cuts) => {
    const matcher = matcherOf(found)
    const follower = matcher.follow()
    const pieces = cutAt(source, cuts)
    const told = pieces.flatMap((piece, index) => follower.push(piece, index === pieces.length - 1).matches)
    expect(told).toEqual([...matcher.matches(source)])
  }),
)

holds(
  'what is told never begins before what was said to be safe, and text goes out as soon as it is',
  fc.property(detector, text(40), (found, source) => {
    const follower = matcherOf(found).follow()
    let safe = 0
    for (const [index, unit] of source.split('').entries()) {
      const step = follower.push(unit, index === source.length - 1)
      for (const { start } of step.matches) expect(start).toBeGreaterThanOrEqual(safe)
      expect(step.safe).toBeGreaterThanOrEqual(safe)
      safe = step.safe
    }
    if (source !== '') expect(safe).toBe(source.length)
  }),
)

holds(
  'redaction gives the same for every split: what came in, but for what was found',
  fc.property(detector, text(40), places, (found, source, cuts) => {
    const rule = ruleOf(found, 'redact')
    let expected = ''
    let from = 0
    for (const { start, end, label } of matcherOf(found).matches(source)) {
      expected += `${source.slice(from, start)}[${label}]`
      from = end
    }
    expect(feedPieces([rule], cutAt(source, cuts)).text).toBe(expected + source.slice(from))
  }),
)

holds(
  'a block lets out exactly what stands before the first match, for every split',
  fc.property(detector, text(40), places, (found, source, cuts) => {
    const passed = feedPieces([ruleOf(found, 'block')], cutAt(source, cuts))
    const [first] = matcherOf(found).matches(source)
    expect(passed.text).toBe(source.slice(0, first?.start))
    expect(passed.stop?.verdict).toBe(first === undefined ? undefined : 'block')
  }),
)

holds(
  'rules in a row give the same for every split',
  fc.property(detector, detector, detector, text(40), places, (one, two, three, source, cuts) => {
    const rules = [ruleOf(one, 'redact'), ruleOf(two, 'redact'), ruleOf(three, 'block')]
    const whole = feedPieces(rules, [source])
    const split = feedPieces(rules, cutAt(source, cuts))
    expect(split.text).toBe(whole.text)
    expect(split.stop === null).toBe(whole.stop === null)
  }),
)

/** An own, slow reading of what a term list means: no folding tables, no automaton. */
const visible = (source: string): string =>
  source
    .replace(/[\u200b\u00ad]/g, '')
    .normalize('NFKC')
    .toLowerCase()

holds(
  'no spelling of a blocked term goes out, by an independent reading of plain text',
  fc.property(
    fc.array(fc.constantFrom('a', 'b', 'A', 'B', 'c', '\u200b', 'ﬁ', 'f', 'i', 'ａ', '😀', ' '), { maxLength: 40 }),
    fc.array(
      fc
        .array(fc.constantFrom('a', 'b', 'c', 'f', 'i', '😀'), { minLength: 1, maxLength: 4 })
        .map((all) => all.join('')),
      { minLength: 1, maxLength: 5 },
    ),
    places,
    (characters, list, cuts) => {
      const source = characters.join('')
      const plain = termDetector(list, '#', { caseSensitive: false, homoglyphs: false, wordBoundaries: false })
      const blocked = feedPieces([ruleOf(plain, 'block')], cutAt(source, cuts))
      const redacted = feedPieces([ruleOf(plain, 'redact')], cutAt(source, cuts))
      const contains = list.some((wanted) => visible(source).includes(wanted))
      expect(blocked.stop !== null).toBe(contains)
      for (const wanted of list) {
        expect(visible(blocked.text)).not.toContain(wanted)
        expect(visible(redacted.text)).not.toContain(wanted)
      }
      if (!contains) expect(redacted.text).toBe(source)
    },
  ),
)

holds(
  'patterns find what a backtracking engine finds at every start',
  fc.property(
    fc.constantFrom(...patternSets.flat()),
    fc.array(fc.constantFrom('a', 'b', 'c', 'f', '1', ' ', 'C'), { maxLength: 25 }),
    (source, characters) => {
      const subject = characters.join('')
      const engine = new RegExp(source.replace('(?i)', ''), source.startsWith('(?i)') ? 'iy' : 'y')
      const covered = new Set<number>()
      const told = new Set<number>()
      for (let start = 0; start < subject.length; start++) {
        engine.lastIndex = start
        const { length } = engine.exec(subject)?.[0] ?? ''
        for (let offset = start; offset < start + length; offset++) covered.add(offset)
      }
      const own = matcherOf(patternDetector([placed(source)], { streaming: true, paramOf: String }))
      for (const { start, end } of own.matches(subject))
        for (let offset = start; offset < end; offset++) told.add(offset)
      for (const offset of covered) expect(told.has(offset)).toBe(true)
    },
  ),
)

const values = {
  EMAIL: ['john.doe@example.com', 'a@b.co'],
  CARD: ['4111 1111 1111 1111', '378282246310005'],
  IBAN: ['GB82 WEST 1234 5698 7654 32', 'DE89370400440532013000'],
  SSN: ['123-45-6789'],
  IP: ['192.168.17.4', '2001:db8::8a2e:370:7334'],
  PHONE: ['+1-984-182-0190', '(602) 272-9781'],
}
const personal = personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip'])
const value = fc.constantFrom(...Object.values(values).flat())
const filler = fc.constantFrom(' and ', ', then: ', '\nMail ', ' (', ') is 😀 ', ' é ')

holds(
  'no personal value goes out, wherever it stands and however it is split',
  fc.property(
    fc.array(fc.tuple(filler, value), { minLength: 1, maxLength: 4 }),
    filler,
    places,
    (parts, after, cuts) => {
      const source = parts.map(([before, held]) => `${before}${held}`).join('') + after
      const passed = feedPieces([ruleOf(personal, 'redact')], cutAt(source, cuts))
      for (const [, held] of parts) expect(passed.text).not.toContain(held)
      expect(passed.text).toBe(feedPieces([ruleOf(personal, 'redact')], [source]).text)
      expect(passed.text.replace(/\[[A-Z]+\]/g, '\0').split('\0')).toHaveLength(parts.length + 1)
      const blocked = feedPieces([ruleOf(personal, 'block')], cutAt(source, cuts))
      expect(blocked.text).toBe(parts[0]?.[0] ?? '')
    },
  ),
)

const secretTexts = [
  ...[...secretRules, ...unprefixedRules].map(({ sample }) => exampleSecret(sample)),
  `-----BEGIN RSA PRIVATE KEY-----\n${`${'MIIEpAIBAAKCAQEA'.repeat(4)}\n`.repeat(30)}-----END RSA PRIVATE KEY-----`,
  `eyJhbGciOiJIUzI1NiJ9.eyJ${'zdWIiOiIxMjM0'.repeat(60)}.${'SflKxwRJSM'.repeat(5)}`,
]

const secret = secretDetector()

holds(
  'no part of a secret goes out, however long it is',
  fc.property(fc.constantFrom(...secretTexts), fc.array(fc.nat({ max: 3000 }), { maxLength: 20 }), (held, cuts) => {
    const source = `The key is ${held} indeed`
    const rule = ruleOf(secret, 'redact')
    const passed = feedPieces([rule], cutAt(source, cuts))
    expect(passed.text).toMatch(/^The key is (?:\[[A-Z_]+\])+ indeed$/)
    expect(passed.text).toBe(feedPieces([rule], [source]).text)
  }),
  Math.min(runs, 400),
)
