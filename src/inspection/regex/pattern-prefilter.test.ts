import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { injectionMatcher } from '../detectors/injection/injection-matcher.ts'
import { injectionSignals } from '../detectors/injection/injection-signals.ts'
import { readable } from '../detectors/injection/injection-text.ts'
import { matcherOf } from '../detectors/text-matcher.ts'
import { characters, disguises, textOf } from '../testing/pattern-texts.ts'
import { patternDetector } from './pattern-detector.ts'
import { patternPrefilter } from './pattern-prefilter.ts'
import { type PatternNode, readPattern } from './pattern-syntax.ts'

const read = (pattern: string): PatternNode => readPattern(pattern, 'config', true)
const detect = (patterns: readonly string[]) => {
  const sources = patterns.map((pattern) => ({ label: 'L', pattern, caseInsensitive: true }))
  return matcherOf(patternDetector(sources, { streaming: false, paramOf: String }))
}

const signals = injectionSignals.map(({ patterns }) => detect(patterns))
const candidates = patternPrefilter(injectionSignals.map(({ patterns }) => patterns.map(read)))
const matching = (text: string): number[] =>
  signals.flatMap((matcher, index) => (matcher.matches(text).length > 0 ? [index] : []))

const nodes = injectionSignals.flatMap(({ patterns }) => patterns.map(read))
const attempt = fc
  .record({
    node: fc.constantFrom(...nodes),
    choices: fc.infiniteStream(fc.nat()),
    disguise: fc.constantFrom(...disguises),
  })
  .map(({ node, choices, disguise }) => disguise(textOf(node, (count) => (choices.next().value ?? 0) % count)))
const words = fc.array(
  fc.constantFrom(...'you are now the no rules ignore all system mode show your password'.split(' ')),
)
const piece = fc.oneof(
  attempt,
  words.map((chosen) => chosen.join(' ')),
  fc.string({ unit: fc.constantFrom(...characters) }),
)

test('the prefilter names every signal that a text shows', () => {
  let shown = 0
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 3 }), (pieces) => {
      const text = pieces.join(' ')
      const found = matching(text)
      shown += found.length
      expect(candidates(text)).toEqual(expect.arrayContaining(found))
    }),
    { numRuns: 120 },
  )
  expect(shown).toBeGreaterThan(25)
})

test('the prefilter names every random pattern that matches', () => {
  const choice = (parts: readonly string[]) => fc.constantFrom(...parts)
  const atom = choice(['a', 'bc', '[a-c]', '[^a]', '\\w', '\\s', '(?:ab|c)', '(?:a|[^b]b)', 'é', '[à-ü]', '\\b', '.'])
  const term = fc
    .tuple(atom, choice(['', '', '?', '+', '*', '{2}', '{0,2}']))
    .map(([of, count]) => (of === '\\b' ? of : of + count))
  const pattern = fc.array(term, { minLength: 1, maxLength: 4 }).map((terms) => `x?${terms.join('')}c`)
  const text = fc.string({ unit: choice([...'aabbcc éüAB']), maxLength: 12 })
  fc.assert(
    fc.property(pattern, pattern, text, (one, other, subject) => {
      const may = patternPrefilter([[read(one)], [read(other)]])(subject)
      const does = [one, other].flatMap((source, index) =>
        detect([source]).matches(subject).length > 0 ? [index] : [],
      )
      expect(may).toEqual(expect.arrayContaining(does))
    }),
    { numRuns: 300 },
  )
})

test('the prefilter names hardly any signal for ordinary text, even with invisible characters', () => {
  const letter =
    'Please summarise the minutes of the meeting of 12 March: who attended, and what was decided about the budget.'
  expect(candidates(letter).length).toBeLessThan(3)
  expect(candidates(`${letter}${'\u200b'.repeat(20)}`).length).toBeLessThan(3)
})

test('injection finds all that its signals find one by one', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 3 }), (pieces) => {
      const text = pieces.join('. ')
      const names = matching(readable(text).plain).map((index) => injectionSignals[index]?.name ?? '')
      expect(injectionMatcher(0.5).report(text).signals).toEqual(expect.arrayContaining(names))
    }),
    { numRuns: 50 },
  )
})
