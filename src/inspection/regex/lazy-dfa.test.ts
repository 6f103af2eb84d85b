/**
 * Learned steps are the walk itself, only faster: whatever the patterns, the text and its split, a detector that learns,
 * one that forgets all the time and one that learns nothing tell the same matches, hold the same and do the same work.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import { BufferedText } from '../buffered-text.ts'
import type { Match } from '../detectors/detector.ts'
import { personalData } from '../detectors/personal-data/personal-data.ts'
import { secretSources } from '../detectors/secrets/secret-patterns.ts'
import { cutAt } from '../testing/passing.ts'
import { WorkBudget, WorkBudgetExceeded } from '../work-budget.ts'
import { type PatternSource, patternDetector } from './pattern-detector.ts'

interface Told {
  readonly matches: readonly Match[]
  readonly live: readonly number[]
  readonly moves: number
}

function tell(sources: readonly PatternSource[], pieces: readonly string[], stepsKept: number | undefined): Told {
  const options = { streaming: false, paramOf: String }
  const detector = patternDetector(sources, stepsKept === undefined ? options : { ...options, stepsKept })
  const matches: Match[] = []
  const live: number[] = []
  const work = new WorkBudget()
  try {
    // The second time what was learned is there.
    for (let time = 0; time < 2; time++) {
      const text = new BufferedText()
      const scanner = detector.scanner(text, work)
      for (const piece of pieces) {
        text.append(piece)
        scanner.advance(false, matches)
        live.push(scanner.liveFrom)
      }
      scanner.advance(true, matches)
      live.push(scanner.overflowAt ?? -1)
    }
  } catch (error) {
    // Where it is too much for one it is for all, at the same place.
    if (!(error instanceof WorkBudgetExceeded)) throw error
  }
  return { matches, live, moves: work.moves }
}

const made = fc
  .letrec((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom('a', 'b', '[ab]', '1', '\\d', '.', '\\w', 'é', '[^a]', '\\p{L}', 'ﬁ'),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `${one}${other}`),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(?:${one}|${other})`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('?', '{0,3}', '{2}', '*', '+', '{1,9}'))
        .map(([one, many]) => `(?:${one})${many}`),
      fc
        .tuple(fc.constantFrom('\\b', '(?<!a)', '(?<=b)', '^', '\\B'), tie('pattern'))
        .map(([look, one]) => `${look}${one}`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('\\b', '(?!a)', '(?=b)', '$', '(?![\\w/])'))
        .map(([one, look]) => `${one}${look}`),
    ),
  }))
  .pattern.map(String)

const unchecked = fc.record({ label: fc.constantFrom('ONE', 'TWO'), pattern: made })
const source = fc.record({
  label: fc.constantFrom('ONE', 'TWO'),
  pattern: fc.tuple(fc.constantFrom('a', 'b', '1'), made).map(([first, rest]) => first + rest),
  caseInsensitive: fc.boolean(),
  check: fc.constantFrom(
    () => true,
    (text: string) => text.length % 2 === 0,
  ),
})
function isPattern(sources: readonly PatternSource[]): boolean {
  try {
    patternDetector(sources, { streaming: false, paramOf: String })
    return true
  } catch (error) {
    if (error instanceof Failure) return false
    throw error
  }
}

const character = fc.constantFrom(
  'a',
  'b',
  'A',
  '1',
  ' ',
  '.',
  'é',
  'ﬁ',
  '\u200b',
  '\u0301',
  'я',
  '😀',
  '\ud83d',
  '/',
  '@',
)
const texts = fc.oneof(
  fc.array(character, { maxLength: 60 }).map((all) => all.join('')),
  fc
    .tuple(fc.array(character, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 60 }))
    .map(([unit, times]) => unit.join('').repeat(times)),
)
const places = fc.array(fc.nat(3000), { maxLength: 8 })

test('matches like the NFA for patterns of any form', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(source, unchecked), { minLength: 1, maxLength: 4 }),
      texts,
      places,
      (sources, text, cuts) => {
        fc.pre(isPattern(sources))
        const pieces = cutAt(text, cuts)
        const walked = tell(sources, pieces, 0)
        expect(tell(sources, pieces, undefined)).toEqual(walked)
        expect(tell(sources, pieces, 30)).toEqual(walked)
      },
    ),
    { numRuns: 200 },
  )
})

const fragment = fc.constantFrom(
  ...[
    '4111 1111 1111 1111',
    '4111-1111',
    'AB12 ',
    'DE89 3704 0044 0532 0130 00',
    'ann@x.org',
    '@',
    '.',
    ' ',
    '\n',
    '+46 8 ',
    '123-45-6789',
  ],
  ...[
    '12 ',
    '1',
    'sk-proj-',
    'AKIA',
    'eyJh',
    'a1B2',
    '2001:db8::',
    '::',
    'March 3rd, 1985',
    'Grüße ',
    '日本語',
    '-----BEGIN',
    '９',
    '\u200b',
    'word ',
  ],
)

test('matches like the NFA for personal data and secrets', () => {
  const sources = [...Object.values(personalData).flat(), ...secretSources]
  const detectors = [0, undefined, 500].map(
    (stepsKept) => (pieces: readonly string[]) => tell(sources, pieces, stepsKept),
  )
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 25 }), places, (fragments, cuts) => {
      const pieces = cutAt(fragments.join(''), cuts)
      const [walked, ...learned] = detectors.map((told) => told(pieces))
      for (const each of learned) expect(each).toEqual(walked as Told)
    }),
    { numRuns: 12 },
  )
})
