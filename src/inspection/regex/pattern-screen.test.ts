import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Detector } from '../detectors/detector.ts'
import { injectionMatcher } from '../detectors/injection/injection-matcher.ts'
import { injectionSignals } from '../detectors/injection/injection-signals.ts'
import { personalData, personalDataDetector } from '../detectors/personal-data/personal-data.ts'
import { secretDetector, secretSources } from '../detectors/secrets/secret-patterns.ts'
import { termDetector } from '../detectors/terms/term-detector.ts'
import { type Found, matcherOf } from '../detectors/text-matcher.ts'
import { characters, disguises, textOf } from '../testing/pattern-texts.ts'
import { patternDetector } from './pattern-detector.ts'
import { readPattern } from './pattern-syntax.ts'

const followed = (detector: Detector, text: string): readonly Found[] =>
  matcherOf(detector).follow().push(text, true).matches
const detect = (pattern: string, streaming = false): Detector =>
  patternDetector([{ label: 'L', pattern }], { streaming, paramOf: String })
const everyday = 'Thanks, Anna! Could you summarise the minutes, and say who was there? The rest can wait.\n'

test('the screen lets every text through in which a detector finds something', () => {
  const sources = [...secretSources, ...Object.values(personalData).flat()]
  const nodes = sources.map(({ pattern, caseInsensitive }) => readPattern(pattern, 'config', caseInsensitive))
  const detectors = [
    secretDetector(),
    personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip', 'date_of_birth']),
  ]
  const written = fc
    .record({
      node: fc.constantFrom(...nodes),
      choices: fc.infiniteStream(fc.nat()),
      disguise: fc.constantFrom(...disguises),
    })
    .map(({ node, choices, disguise }) => disguise(textOf(node, (count) => (choices.next().value ?? 0) % count)))
  const piece = fc.oneof(written, fc.string({ unit: fc.constantFrom(...characters) }))
  let found = 0
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 3 }), (pieces) => {
      const text = pieces.join(' ')
      for (const detector of detectors) {
        if (followed(detector, text).length === 0) continue
        found++
        expect(detector.mayMatch(text)).toBe(true)
      }
    }),
    { numRuns: 150 },
  )
  expect(found).toBeGreaterThan(30)
})

test('the screen lets every text through in which a random pattern matches', () => {
  const choice = (parts: readonly string[]) => fc.constantFrom(...parts)
  const atom = choice([
    'a',
    'bc',
    '[a-c]',
    '[^a]',
    '\\w',
    '\\s',
    '(?:ab|c)',
    '(?:a|[^b]b)',
    'é',
    '[à-ü]',
    '\\b',
    '(?i)k',
  ])
  const term = fc
    .tuple(atom, choice(['', '', '?', '+', '*', '{2}', '{0,2}', '{2,5}', '{3,9}']))
    .map(([of, count]) => (of === '\\b' || of === '(?i)k' ? of.replace('(?i)', '') : of + count))
  const pattern = fc.array(term, { minLength: 1, maxLength: 4 }).map((terms) => `x?${terms.join('')}c`)
  const text = fc.string({ unit: choice([...'aabbcck éüABK\u00ad１']), maxLength: 14 })
  fc.assert(
    fc.property(pattern, text, fc.boolean(), (source, subject, caseless) => {
      const detector = detect(caseless ? `(?i)${source}` : source)
      if (followed(detector, subject).length > 0) expect(detector.mayMatch(subject)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

test('the screen of terms lets every text through in which a term stands, however it is spelled', () => {
  const term = fc.string({ unit: fc.constantFrom(...'abß éК'), minLength: 1, maxLength: 4 })
  const text = fc.string({ unit: fc.constantFrom(...'abABsS é\u0301\u00adКк'), maxLength: 16 })
  fc.assert(
    fc.property(fc.array(term, { minLength: 1, maxLength: 4 }), text, fc.boolean(), (terms, subject, exact) => {
      const visible = terms.filter((each) => each.trim() !== '')
      if (visible.length === 0) return
      const options = { caseSensitive: exact, homoglyphs: !exact, wordBoundaries: exact }
      const detector = termDetector(visible, 'TERM', options)
      if (followed(detector, subject).length > 0) expect(detector.mayMatch(subject)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('the screen of prompt injection lets every text through in which it is found', () => {
  const matcher = injectionMatcher(0.5)
  const nodes = injectionSignals.flatMap(({ patterns }) => patterns.map((each) => readPattern(each, 'config', true)))
  const attempt = fc
    .record({ node: fc.constantFrom(...nodes), choices: fc.infiniteStream(fc.nat()) })
    .map(({ node, choices }) => textOf(node, (count) => (choices.next().value ?? 0) % count))
  fc.assert(
    fc.property(fc.array(attempt, { maxLength: 4 }), fc.nat(40), (attempts, times) => {
      const text = `${attempts.join('. ')} ${'go\t'.repeat(times)}${'\u200b'.repeat(times)}`
      if (matcher.matches(text).length > 0) expect(matcher.mayMatch(text)).toBe(true)
    }),
    { numRuns: 60 },
  )
})

test('the screens of all detectors stop ordinary text', () => {
  expect(secretDetector().mayMatch(everyday)).toBe(false)
  expect(personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip']).mayMatch(everyday)).toBe(false)
  expect(injectionMatcher(0.5).mayMatch(everyday)).toBe(false)
  expect(detect('PRJ-[0-9]{6}').mayMatch(everyday)).toBe(false)
  const options = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
  expect(termDetector(['sesame'], 'TERM', options).mayMatch(everyday)).toBe(false)
  expect(detect('[a-z ]{3,9}').mayMatch(everyday)).toBe(true)
})

test('the screen lets all texts through when it would take many steps for each character', () => {
  const letters = 'pqrstuvwxyz'
  const sources = Array.from({ length: 99 }, (_, index) => {
    const classes = Array.from({ length: 12 }, (_each, at) => `[a-${letters[(index * at + at) % 11]}]`).join('')
    return { label: 'L', pattern: `[${index % 10}a-z]${classes}` }
  })
  const detector = patternDetector(sources, { streaming: false, paramOf: String })
  expect(detector.mayMatch('!')).toBe(true)
})

test('the screen lets a text through in which a match could be held for too long', () => {
  const hidden = `secret@${'\u200b'.repeat(1100)}`
  for (const detector of [personalDataDetector(['email']), detect('secret@x{3}', true)]) {
    expect(followed(detector, hidden)).toMatchObject([{ endless: true }])
    expect(detector.mayMatch(hidden)).toBe(true)
  }
  const options = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
  const terms = termDetector(['sesame'], 'TERM', options)
  expect(followed(terms, `ses${'\u200b'.repeat(1100)}`)).toMatchObject([{ endless: true }])
  expect(terms.mayMatch(`ses${'\u200b'.repeat(1100)}`)).toBe(true)
})
