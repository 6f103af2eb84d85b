import { expect, test } from 'bun:test'
import { nearest } from './nearest.ts'

const names = ['groq', 'mistral', 'openrouter', 'xai']

test('finds the name with the fewest differences, in any letter case', () => {
  expect(nearest('grok', names)).toBe('groq')
  expect(nearest('Mistrall', names)).toBe('mistral')
  expect(nearest('open-router', names)).toBe('openrouter')
  expect(nearest('XAI', names)).toBe('xai')
})

test('finds none where every name is far away', () => {
  expect(nearest('watsonx', names)).toBeNull()
  expect(nearest('', names)).toBeNull()
})
