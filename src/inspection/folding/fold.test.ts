import { expect, test } from 'bun:test'
import { personalData } from '../detectors/personal-data/personal-data.ts'
import { termDetector } from '../detectors/terms/term-detector.ts'
import { matcherOf } from '../detectors/text-matcher.ts'
import { patternDetector } from '../regex/pattern-detector.ts'
import { feedPieces, ruleOf } from '../testing/passing.ts'
import { foldForPattern, isIgnorable } from './fold.ts'

test('drops every invisible character, also U+FEFF', () => {
  for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
    if (/\p{Default_Ignorable_Code_Point}/u.test(String.fromCodePoint(codePoint))) {
      expect([codePoint, isIgnorable(codePoint), foldForPattern(codePoint)]).toEqual([codePoint, true, []])
    }
  }
})

test('finds a term or address with U+FEFF inside, whole or in pieces', () => {
  const email = patternDetector(personalData.email, { streaming: true, paramOf: String })
  const term = termDetector(['secret'], 'TERM', { caseSensitive: false, homoglyphs: false, wordBoundaries: true })
  const text = 'a se\ufeffcret to bo\ufeffb@x.c\ufeffom.'
  expect(matcherOf(term).matches(text)).toMatchObject([{ start: 2, end: 9 }])
  const rules = [ruleOf(term, 'redact'), ruleOf(email, 'redact')]
  expect(feedPieces(rules, [text]).text).toBe('a [TERM] to [EMAIL].')
  expect(feedPieces(rules, [...text]).text).toBe('a [TERM] to [EMAIL].')
  expect(feedPieces(rules, ['{"a":"bob@\\ufeffx.com"}'], 'tool_arguments').text).toBe('{"a":"[EMAIL]"}')
})

test('folds all Turkish forms of i to one letter and finds them at their position', () => {
  const term = termDetector(['istanbul'], 'TERM', { caseSensitive: false, homoglyphs: false, wordBoundaries: false })
  const pattern = patternDetector([{ label: 'P', pattern: 'istanbul', caseInsensitive: true }], {
    streaming: true,
    paramOf: String,
  })
  for (const spelled of ['istanbul', 'ISTANBUL', 'İstanbul', 'İSTANBUL', 'ıstanbul']) {
    const text = `in ${spelled}, İİ`
    for (const rules of [[ruleOf(term, 'redact')], [ruleOf(pattern, 'redact')]]) {
      expect(feedPieces(rules, [text]).text).toMatch(/^in \[(TERM|P)\], İİ$/)
      expect(feedPieces(rules, [...text]).text).toMatch(/^in \[(TERM|P)\], İİ$/)
    }
  }
  expect(feedPieces([ruleOf(term, 'redact')], ['i\u0307stanbul']).text).toBe('[TERM]')
})
