import { expect, test } from 'bun:test'
import { outputMaximum } from './output-maximum.ts'

test('outputMaximum() knows dated and prefixed model names, and gives unknown models a moderate limit', () => {
  const models = [
    'claude-sonnet-4-5',
    'eu.anthropic.claude-opus-4-1-20250805-v1:0',
    'anthropic.claude-opus-4-7',
    'claude-sonnet-5',
    'claude-haiku-4-5-20251001',
    'claude-sonnet-4-20250514',
    'claude-3-5-haiku-latest',
    'gemini-2.5-flash',
    'gpt-4o',
    'gpt-4o-2024-05-13',
    'openai/gpt-4.1-mini',
    'gpt-4-turbo',
    'gpt-5-mini',
    'o3',
    'o1-preview',
    'llama-3.3-70b',
  ]
  expect(models.map(outputMaximum)).toEqual([
    64_000, 32_000, 128_000, 128_000, 64_000, 64_000, 8192, 65_535, 16_384, 4096, 32_768, 4096, 128_000, 100_000,
    32_768, 16_384,
  ])
})
