import { expect, test } from 'bun:test'
import { matcherOf } from '../text-matcher.ts'
import { personalDataDetector } from './personal-data.ts'

const { matches } = matcherOf(personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip']))
const found = (text: string) => matches(text).map(({ start, end, label }) => [label, text.slice(start, end)])

test('finds a whole IBAN over two lines', () => {
  for (const iban of [
    'DE89\n3704 0044 0532 0130 00',
    'DE89 3704 0044\r\n0532 0130 00',
    'GB82 WEST 1234\n5698 7654 32',
  ]) {
    expect(found(`Pay to ${iban} today`)).toEqual([['IBAN', iban]])
    expect(found(`Pay to ${iban}\n2024-11-22 is the day`)).toEqual([['IBAN', iban]])
  }
})

test('finds a card number over one line break, and nothing in a list or column of numbers', () => {
  for (const card of ['4111 1111\n1111 1111', '4111-1111-1111\r\n1111']) {
    expect(found(`My card is ${card} thanks`)).toEqual([['CARD', card]])
  }
  for (const list of ['4111, 1111, 1111, 1111', '4111\n1111\n1111\n1111']) {
    expect(found(`The counts are ${list} here`)).toEqual([])
  }
})

test('takes no tool argument for a phone number', () => {
  expect(found('Call the function foo(1234567890)')).toEqual([])
  expect(found('Text tel(1234567890)')).toEqual([['PHONE', '1234567890']])
})

test('finds an address at the end of a sentence and none in a five-part version', () => {
  expect(found('It came from 203.0.113.77.')).toEqual([['IP', '203.0.113.77']])
  expect(found('It came from 203.0.113.77. Then')).toEqual([['IP', '203.0.113.77']])
  expect(found('from 203.0.113.77… or 203.0.113.78:80')).toEqual([
    ['IP', '203.0.113.77'],
    ['IP', '203.0.113.78'],
  ])
  expect(found('Version 1.2.3.4.5 of the program')).toEqual([])
})
