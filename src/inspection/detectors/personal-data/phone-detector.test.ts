import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cutAt, feedPieces, ruleOf } from '../../testing/passing.ts'
import { WorkBudget, WorkBudgetExceeded } from '../../work-budget.ts'
import { matcherOf } from '../text-matcher.ts'
import { phoneDetector } from './phone-detector.ts'

const matcher = matcherOf(phoneDetector)
const found = (text: string): string[] => matcher.matches(text).map(({ start, end }) => text.slice(start, end))
const redaction = ruleOf(phoneDetector, 'redact')

/** Formats of many countries; those in the second list are numbers only beside a word that says so. */
const byThemselves = [
  ...['+46 (0)8 928 571 38', '+447700 208 815', '001-253-366-9781', '(+30) 2491 186252', '00420 604 913 909'],
  ...['+1-903-140-4508x769', '780-999-2181', '930.167.3943', '1 (926) 018-1590', '(602)272-9781', '1.800.555.1234'],
  ...['826-801-8159x08301', '+1 (415) 555-2671 ext. 55', '056 590 36 33', '0496 46 46 70', '03.93.92.16.85'],
  ...[
    '090-2601-8159',
    '0341 8387176',
    '(0543) 231 9487',
    '8 (246) 281-9482',
    '04379 75432 319',
    '+90(955)597-9711x4710',
  ],
  ...[
    '21 253 109 8211',
    '(03).6018.1590',
    '+998 (30) 824-62-81',
    '+86 138 0013 8000',
    '+91 99351 81909',
    '٠٩٠-٢٦٠١-٨١٥٩',
  ],
]
const besideAWord = [
  ...['9472 7916', '450 0840', '99 668472', '432 03 163', '28-64-66-98', '723 813 266'],
  ...['9498777106', '13800138000', '57 328 657 97 54', '326.01815', '30/166 1318', '73-1322-8171'],
]
const noNumbers = [
  ...['on 2012-10-01 00:46', '10 000 000 people in 1999-2004', 'version 10.2.33', 'call 192.168.100.200', '+12345678'],
  ...['10 20 30 40 50 60', '120 340 560 789', 'pay 4111-1111-1111-1112!', 'pay 3782 822463 10006', '1,234,567,890'],
  ...['Apt. 675 62314 Mellemvej', 'my new address is 224 4966 Bond Street', 'the office is at 17031 2202 Rissik St'],
  ...[
    'license number is 2270-66-1551',
    'order number 12345678',
    'order 006189635',
    'NAY 06563-4892',
    'ISBN 978-3-16-148410-0',
    '3.141592653589793',
  ],
  ...[
    '123e4567-e89b-12d3-a456-426614174000',
    'at 1698765432',
    '0000000000',
    '$ 555 123 4567',
    'https://a.b/415-555-2671',
  ],
]

/** They stand beside words that can also mark a phone number. */
const quantities = [
  ...['calls wait 250-30000 ms', 'each call is held for 5000-300000 ms by default', 'a call takes 100-1000000 steps'],
  ...['the message has 8192-131072 bytes', 'text of 1048576 characters', 'call timeout: 3600000', 'reach 1000000 rows'],
  ...['message at 1732341210', 'last call 1732341210123', 'call 78454736-fc6d-4a9e-bc60-7064ee550960 failed'],
  ...['digits = "0123456789"', 'job 0000012345 ended', 'contact sheet of 2500000 pixels'],
]

test('takes no range, quantity, time or identifier beside a word such as "call" for a phone number', () => {
  for (const text of quantities) expect([text, ...found(text)]).toEqual([text])
})

test('finds phone numbers beside a word such as "call" that look like ranges or end with zeros', () => {
  for (const number of ['555-1200', '250-3100', '13800138000', '9498777106', '723-813-2600', '0171 2000000']) {
    expect(found(`Please call ${number} tomorrow`)).toEqual([number])
  }
  for (const number of ['250-30000', '7200000', '1732341210']) expect(found(`Phone: ${number}`)).toEqual([number])
})

test('finds whole numbers with a country code, area code, extension or known grouping', () => {
  for (const number of byThemselves) expect(found(`I saw ${number} yesterday.`)).toEqual([number])
})

test('finds other numbers when a nearby word says that they are phone numbers', () => {
  for (const number of besideAWord) {
    expect(found(`I saw ${number} yesterday.`)).toEqual([])
    for (const [before, after] of [
      ['Can someone call me on ', '? I have questions'],
      ['Name: Ann\nMobile: ', '\nDesk: none'],
      ['llámame al ', ', gracias'],
      ['我的电话是', '。'],
      ['APO AA 61487\n', ' office'],
      ['Portugal 30971\n', '-Fax'],
    ]) {
      expect(found(`${before}${number}${after}`)).toEqual([number])
    }
  }
})

test('leaves parentheses around a number', () => {
  for (const number of ['+1-984-182-0190', '212 555 9999', '(602) 272-9781', '0341 8387176', '(+30) 2491 186252']) {
    expect(found(`Ann (${number}) wrote (${number} and more`)).toEqual([number, number])
  }
})

test('takes no other row of digits for a phone number', () => {
  for (const text of noNumbers) expect([text, ...found(text)]).toEqual([text])
})

test('finds each number of a list separately', () => {
  expect(found('+1 415 555 2671, +44 20 7946 0958 and 212 555 9999')).toEqual([
    '+1 415 555 2671',
    '+44 20 7946 0958',
    '212 555 9999',
  ])
})

test('finds a number wherever it stands in a row of other digits that is longer than what is judged at once', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('378282246310005', '4111 1111 1111 1111', '12', '3 45', '(602) 272-9781'), {
        maxLength: 9,
      }),
      fc.constantFrom(' ', ' (', ' / ', ' - '),
      fc.constantFrom('(602) 272-9781', '+1-984-182-0190', '+44 20 7946 0958'),
      (others, between, number) => {
        const text = [...others, number].join(between)
        expect(matcher.matches(`${text} and`).some(({ end }) => end >= text.length)).toBe(true)
      },
    ),
  )
})

const fragment = fc.constantFrom(
  ...[
    ...byThemselves,
    ...besideAWord,
    ...noNumbers,
    ...quantities,
    'call ',
    ' ',
    '\n',
    ', ',
    '-',
    '(',
    ')',
    '+',
    '/',
    '.',
    '7',
    '55 ',
  ],
  ...['\u200b', '９', '😀', '\ud83d', 'x', 'ext. 1', ' office', '\u2011', 'é', '电话'],
)

test('finds the same in a stream split anywhere, and in any text that the prefilter passes', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 12 }), fc.array(fc.nat(400), { maxLength: 12 }), (parts, places) => {
      const text = parts.join('')
      const whole = feedPieces([redaction], [text])
      expect(feedPieces([redaction], cutAt(text, places))).toMatchObject({ text: whole.text, findings: whole.findings })
      expect(feedPieces([redaction], [...text]).text).toBe(whole.text)
      if (whole.findings.length > 0) expect(phoneDetector.mayMatch(text)).toBe(true)
    }),
    { numRuns: 600 },
  )
})

test('holds at most one row of digits and the characters after it', () => {
  const follower = matcher.follow()
  let read = 0
  for (const piece of '1 22 333 '.repeat(500)) {
    read += piece.length
    expect(read - follower.push(piece, false).safe).toBeLessThan(100)
  }
})

test('stops a text with endless ignorable characters inside a number', () => {
  const text = `call 780-999${'\u200b'.repeat(1100)}-2181`
  expect(matcher.matches(text)).toMatchObject([{ endless: true }])
  expect(phoneDetector.mayMatch(text)).toBe(true)
})

test('counts its work', () => {
  const worn = new WorkBudget()
  expect(() => worn.add(1e9, 0)).toThrow(WorkBudgetExceeded)
  expect(() => matcher.follow(worn).push('call 780-999-2181', true)).toThrow(WorkBudgetExceeded)
})
