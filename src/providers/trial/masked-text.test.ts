import { expect, test } from 'bun:test'
import { maskedText } from './masked-text.ts'

const key = 'sk-proj-ABCDEFGHIJKLMNOP1234'

test('masks a key, whole or in part', () => {
  expect(maskedText(`Incorrect API key provided: ${key}.`, [key])).toBe('Incorrect API key provided: ***.')
  expect(maskedText('Incorrect API key provided: sk-proj-********1234.', [key])).toBe('Incorrect API key provided: ***')
  expect(maskedText('Key "sk-pro..." is wrong', [key])).toBe('Key "***" is wrong')
  expect(maskedText('It ends in ...1234', [key])).toBe('It ends in ***')
})

test('masks each of several secrets', () => {
  expect(maskedText('AKIAEXAMPLE and secretaccesskey', ['AKIAEXAMPLE', 'secretaccesskey'])).toBe('*** and ***')
})

test('shows other text on one line, up to 300 characters', () => {
  expect(maskedText('The model\n `a`  is\u0007gone', [key])).toBe('The model `a` is gone')
  expect(maskedText('a '.repeat(400), [])).toHaveLength(301)
})
