import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { feedPieces, ruleOf } from '../../testing/passing.ts'
import { matcherOf, overflowEntry } from '../text-matcher.ts'
import { termDetector } from './term-detector.ts'

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const found = (terms: readonly string[], text: string, options = {}) =>
  matcherOf(termDetector(terms, 'TERM', { ...plain, ...options }))
    .matches(text)
    .map(({ start, end }) => text.slice(start, end))

test('finds terms in any case, width and composition and with invisible characters inside', () => {
  expect(found(['Secret'], 'SECRET ｓｅｃｒｅｔ s\u200be\u00adcr\u2060et')).toEqual([
    'SECRET',
    'ｓｅｃｒｅｔ',
    's\u200be\u00adcr\u2060et',
  ])
  expect(found(['straße'], 'STRASSE')).toEqual(['STRASSE'])
  expect(found(['ΟΔΟΣ'], 'οδος')).toEqual(['οδος'])
  expect(found(['café'], 'cafe\u0301')).toEqual(['cafe\u0301'])
  expect(found(['ệ'], 'e\u0302\u0323')).toEqual(['e\u0302\u0323'])
  expect(found(['각'], '\u1100\u1161\u11a8')).toEqual(['\u1100\u1161\u11a8'])
  expect(found(['x y'], 'x\u00a0y')).toEqual(['x\u00a0y'])
})

test('takes a whole ligature when a term is part of it', () => {
  expect(found(['fish', 'oaf'], 'a ﬁsh, oaﬁ')).toEqual(['ﬁsh', 'oaﬁ'])
})

test('does not match other accents and syllables by default', () => {
  expect(found(['cafe', '가'], 'café cafe\u0301 각')).toEqual([])
  expect(found(['Secret'], 'SECRET Secret', { caseSensitive: true })).toEqual(['Secret'])
})

test('matches lookalike letters and accents when the option is on', () => {
  expect(found(['paypal'], 'раура1 рауpаl pạypál', { homoglyphs: true })).toEqual(['рауpаl', 'pạypál'])
  expect(found(['secret'], 'ѕесrет', { homoglyphs: true })).toEqual(['ѕесrет'])
})

test('matches whole words, where marks, digits and letters continue a word and invisible characters do not end one', () => {
  const whole = { wordBoundaries: true }
  expect(found(['cat'], 'cat concat cats cat_ cat2 (cat)', whole)).toEqual(['cat', 'cat'])
  expect(found(['cat'], 'cat\u200bs con\u200bcat', whole)).toEqual([])
  expect(found(['東京', 'c++'], '私は東京都へ c++, x', whole)).toEqual(['東京', 'c++'])
})

test('joins overlapping findings and keeps touching ones apart', () => {
  expect(found(['abc', 'bcd', 'cde'], 'xabcdex')).toEqual(['abcde'])
  expect(found(['ab', 'cd'], 'abcd')).toEqual(['ab', 'cd'])
  expect(found(['she', 'he', 'hers'], 'ushers')).toEqual(['shers'])
})

const pushed = (terms: readonly string[], pieces: readonly string[], options = {}) =>
  feedPieces([ruleOf(termDetector(terms, '#', { ...plain, ...options }), 'redact')], pieces).parts

test('sends text that cannot be part of a match at once and holds a tail that may be', () => {
  expect(pushed(['secret'], ['a b', 'c s', 'ec', 'ond ', 'secre'])).toEqual(['a b', 'c ', '', 'second ', '', 'secre'])
  expect(pushed(['cat'], ['con', 'ca', 't!'], { wordBoundaries: true })).toEqual(['con', 'ca', 't!', ''])
})

test('keeps surrogate pairs together', () => {
  expect(pushed(['x'], ['a\ud83d', '\ude00b', '\ud83d'])).toEqual(['a', '😀b', '', '\ud83d'])
  expect(pushed(['😀'], ['a\ud83d', '\ude00b'])).toEqual(['a', '[#]b', ''])
})

test('drops a match when a following mark makes it another word', () => {
  expect(pushed(['cafe'], ['caf', 'e', '\u0301', ' x'])).toEqual(['', '', '', 'cafe\u0301 x', ''])
})

test('stops the text when a candidate stays live beyond the bound, at every split', () => {
  const flood = `ok s${'\u200b'.repeat(3000)}ecret`
  const rule = ruleOf(termDetector(['secret'], '#', plain), 'redact')
  for (const size of [1, 7, 5000]) {
    const pieces = flood.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    const passed = feedPieces([rule], pieces)
    expect(passed.text).toBe('ok ')
    expect(passed.stop).toMatchObject({ verdict: 'block', entry: overflowEntry })
  }
})

test('reports endlessly overlapping matches in parts and sends nothing of them', () => {
  const line = `a ${'-'.repeat(5000)} b`
  const rule = ruleOf(termDetector(['--'], '#', plain), 'redact')
  const whole = feedPieces([rule], [line]).text
  expect(whole).toMatch(/^a (?:\[#\])+ b$/)
  expect(feedPieces([rule], line.match(/.{1,3}/g) ?? []).text).toBe(whole)
})

test('refuses an invisible term and too many terms, and names the entry', () => {
  for (const [term, terms] of [
    ['\u200b', ['fine', '\u200b']],
    ['long', ['fine', 'x'.repeat(513)]],
  ] as const) {
    expect(() => termDetector([...terms], 'TERM', plain), term).toThrow(
      expect.objectContaining({ code: 'invalid_parameter', param: 'config.terms.1' }),
    )
  }
})

test('builds a hundred thousand terms in seconds and passes a megabyte without a match whole', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `term${index.toString(36)}x${(index * 7919).toString(36)}`)
  const matcher = matcherOf(termDetector([...many, 'needle'], 'TERM', plain))
  const text = 'Plain prose with nothing to be found, terms of many words. '.repeat(18_000)
  expect(matcher.matches(text)).toEqual([])
  expect(matcher.matches(`${text}${many[99_999]} needle`)).toHaveLength(2)
}, 30_000)

const tagged = (text: string) => [...text].map((each) => String.fromCodePoint(0xe0000 + each.charCodeAt(0))).join('')

test.each([
  ['small capitals', 'ꜱᴡᴏʀᴅꜰɪꜱʜ'],
  ['circled letters', 'ⓢⓦⓞⓡⓓⓕⓘⓢⓗ'],
  ['parenthesized letters', '⒮⒲⒪⒭⒟⒡⒤⒮⒣'],
  ['squared letters', '🅂🅆🄾🅁🄳🄵🄸🅂🄷'],
  ['letters in black circles', '🅢🅦🅞🅡🅓🅕🅘🅢🅗'],
  ['letters in black squares', '🆂🆆🅾🆁🅳🅵🅸🆂🅷'],
  ['tag characters', tagged('swordfish')],
  ['tag characters within', `sw${tagged('ord')}fish`],
  ['tag characters that say nothing', `sw${tagged('xyz')}ordfish`],
  ['decimal entities', 's&#119;&#0111;rd&#102ish'],
  ['hexadecimal entities', '&#x73;&#X77;&#x006f;&#x72;d&#x66;ish'],
  ['named entities', '&sfr;w&oopf;rdfi&sscr;h'],
  ['an invisible entity', 'sword&shy;fi&ZeroWidthSpace;s&#8203;h'],
  ['private use', 'sword\ue000f\u{f0001}ish'],
  ['regional indicators', '🇸🇼🇴🇷🇩🇫🇮🇸🇭'],
  ['entities that are encoded twice', 's&amp;#119;or&amp;amp;#x64;f&#38;#105;sh'],
  ['noncharacters', 'sw\uffffor\ufdd0dfi\u{1fffe}sh'],
  ['code points that are not assigned', 'sword\u0378fi\u{3fff0}sh'],
  ['lone surrogates', 'sw\ud800ord\udc00fish'],
])('finds a term in %s at its position, whole and in pieces', (_, spelled) => {
  expect(found(['swordfish'], `a &amp; ${spelled}!`)).toEqual([spelled])
  const rule = ruleOf(termDetector(['swordfish'], 'TERM', plain), 'redact')
  expect(feedPieces([rule], [...`x&${spelled}&#`].map(String)).text).toBe('x&[TERM]&#')
})

test('leaves text that only begins like an entity unchanged', () => {
  expect(found(['at&t', 'r&d', '&#98;'], 'AT&T, R&D &#98; &#99999999; &bogus; &')).toEqual(['AT&T', 'R&D', '&#98;'])
  expect(found(['b'], '&bogus;')).toEqual(['b'])
  expect(found(['us'], 'the flag 🇺🇸')).toEqual([])
  expect(found(['bird'], 'a bird🇺🇸', { wordBoundaries: true })).toEqual(['bird'])
  expect(found(['cat'], 'con&#99;at 🅒at &#99;at', { wordBoundaries: true })).toEqual(['🅒at', '&#99;at'])
})

test('finds the same at every split of a text with two readings', () => {
  const part = fc.constantFrom(
    ...[
      'sword',
      'fish',
      's',
      'w',
      '&',
      '&#',
      '&#115;',
      '&#x77',
      ';',
      'swordfish',
      ' ',
      '\ue000',
      '\ud83d',
      '\udd34',
      '🅢',
      '🇸',
      '\uffff',
      'amp;',
      'ꜱ',
    ],
    ...[tagged('sword'), tagged('x'), '&shy;', '\u200b', 'é', '&amp;'],
  )
  const detectors = [plain, { ...plain, wordBoundaries: true }].map((options) =>
    matcherOf(termDetector(['swordfish', 'wo', 's&', 'fi\ue000'], 'TERM', options)),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), fc.array(fc.nat(40), { maxLength: 6 }), (parts, cuts) => {
      const text = parts.join('')
      for (const matcher of detectors) {
        const follower = matcher.follow()
        const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((one, other) => one - other)
        const told = [0, ...places].flatMap((from, index, all) => [
          ...follower.push(text.slice(from, all[index + 1] ?? text.length), index === all.length - 1).matches,
        ])
        expect(told).toEqual([...matcher.follow().push(text, true).matches])
        if (told.length > 0) expect(matcher.mayMatch(text)).toBe(true)
      }
    }),
    { numRuns: 500 },
  )
})
