import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { personalData } from '../detectors/personal-data/personal-data.ts'
import { matcherOf } from '../detectors/text-matcher.ts'
import { feedPieces, ruleOf } from '../testing/passing.ts'
import { WorkBudget, WorkBudgetExceeded } from '../work-budget.ts'
import { patternDetector } from './pattern-detector.ts'

const detector = (pattern: string, streaming = true) =>
  patternDetector([{ label: 'FOUND', pattern }], { streaming, paramOf: (index) => `config.patterns.${index}.pattern` })
const found = (pattern: string, text: string) =>
  matcherOf(detector(pattern))
    .matches(text)
    .map(({ start, end }) => text.slice(start, end))
const failure = (pattern: string, streaming = true) => {
  try {
    detector(pattern, streaming)
    return null
  } catch (thrown) {
    return thrown instanceof Failure ? [thrown.code, thrown.param] : thrown
  }
}

test('gives the supported syntax its usual meaning', () => {
  expect(found('gr[ae]y|b.e', 'grey gray bxe b\ne')).toEqual(['grey', 'gray', 'bxe'])
  expect(found('\\bv\\d{1,2}(?:\\.\\d)?\\b', 'v1 v12.3 v123 av1')).toEqual(['v1', 'v12.3'])
  expect(found('(?i)straße|[a-c]x', 'STRAßE Bx')).toEqual(['STRAßE', 'Bx'])
  expect(found('^a|b$', 'aab')).toEqual(['a', 'b'])
  expect(found('(?<![0-9])[0-9]{3}(?![0-9])', '12 123 1234')).toEqual(['123'])
  expect(found('(?<=#)[a-z]{1,9}(?=;)', '#ab; #cd')).toEqual(['ab'])
  expect(found('[^\\s\\]]{2,3}\\]', 'a bc] ]')).toEqual(['bc]'])
  expect(found('\\p{Lu}{2}\\x41\\u{1F600}', 'ÄÖA😀')).toEqual(['ÄÖA😀'])
  expect(found('(?:(?:a|b){0,2}){1,2}c', 'abbac c')).toEqual(['abbac', 'c'])
  expect(found('１{2}', 'x11')).toEqual(['11'])
  expect(found('a-?[b-]', 'ab a- a')).toEqual(['ab', 'a-'])
})

test('matches compatibility-folded text and includes invisible characters in the match', () => {
  expect(found('\\d{4}', '１２\u200b３４')).toEqual(['１２\u200b３４'])
  expect(found('file', 'a ﬁle')).toEqual(['ﬁle'])
})

test('refuses an unusable pattern and names its field', () => {
  const field = 'config.patterns.0.pattern'
  for (const wrong of [
    'a(b',
    'a)',
    '[a',
    '[[:alpha:]]',
    '*a',
    'a**',
    '(a)\\1',
    '(?=ab)c',
    'a{2,1}',
    '\\q',
    '[z-a]',
    '\\p{Nothing}',
    'a?',
    '(?:)',
    '\\b',
    'a++',
  ]) {
    expect([wrong, failure(wrong)]).toEqual([wrong, ['invalid_parameter', field]])
  }
  expect(failure('x(?:a?){1000}y')).toEqual(['invalid_parameter', field])
  expect(failure('(?:(?:a{1,100}){1,100}){1,100}')).toEqual(['invalid_parameter', field])
})

test('refuses an unbounded pattern only for streams', () => {
  for (const unbounded of ['a+', 'ab*', '[a-z]{2,}', 'a{1,513}', '(?:ab{0,300}){2}']) {
    expect(failure(unbounded)).toEqual(['pattern_unbounded', 'config.patterns.0.pattern'])
    expect(failure(unbounded, false)).toBeNull()
  }
  expect(failure('a{1,512}')).toBeNull()
  const whole = matcherOf(detector('a+', false))
  expect(whole.matches(`b${'a'.repeat(5000)}b`)).toMatchObject([{ start: 1, end: 5001 }])
})

test('matches in linear time, because no pattern backtracks', () => {
  const text = 'a'.repeat(2000)
  expect(matcherOf(detector('(?:a{1,20}){1,20}b')).matches(text)).toEqual([])
  expect(matcherOf(detector('(?:a|a|a?a){1,200}$')).matches(text.slice(0, 500))).not.toEqual([])
})

const email = ruleOf(patternDetector(personalData.email, { streaming: true, paramOf: String }), 'redact')

test('holds a match until it can no longer grow', () => {
  expect(feedPieces([email], ['to a@b.co', 'm', ', ok']).parts).toEqual(['to ', '', '[EMAIL], ', 'ok'])
  expect(feedPieces([email], ['to a@b.co']).parts).toEqual(['to ', '[EMAIL]'])
})

test('drops a candidate at the character that rules it out', () => {
  expect(feedPieces([email], ['john', '.', ' Doe ', '@home']).parts).toEqual(['', '', 'john. Doe ', '@', 'home'])
  const card = ruleOf(patternDetector(personalData.card, { streaming: true, paramOf: String }), 'redact')
  expect(feedPieces([card], ['4111 1111 1111 111', '2, ok']).text).toBe('4111 1111 1111 1112, ok')
  expect(feedPieces([card], ['4111 1111 1111 111', '1, ok']).text).toBe('[CARD], ok')
})

test('limits a policy’s work at every split, far above what everyday patterns need', () => {
  const text = 'a'.repeat(300_000)
  const wide = matcherOf(detector('[a-z]{1,500}@corp'))
  expect(() => wide.matches(`${text}@corp`)).toThrow(WorkBudgetExceeded)
  expect(wide.matches(text)).toEqual([])
  const work = new WorkBudget()
  expect(() => {
    for (let at = 0; at < text.length; at += 300) wide.follow(work).push(text.slice(at, at + 300), true)
  }).toThrow(WorkBudgetExceeded)
  const prose = 'The quick brown fox wrote to john.doe@example.com about order 48151623 in 2021. '.repeat(500)
  const everyday = new WorkBudget()
  const all = patternDetector(Object.values(personalData).flat(), { streaming: true, paramOf: String })
  matcherOf(all).follow(everyday).push(prose, true)
  expect(everyday.moves).toBeLessThan(prose.length * 32)
})

test('ends and matches a repetition of an empty expression', () => {
  for (const pattern of ['1(?:\\ba?)+', '1(?:(?<=1)a?)*\\b', '(?:^(?:a)?)+1']) {
    const matcher = matcherOf(patternDetector([{ label: 'X', pattern }], { streaming: false, paramOf: String }))
    expect(matcher.matches('1')).toMatchObject([{ start: 0, end: 1 }])
  }
})
