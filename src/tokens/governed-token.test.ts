import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { globMatches, modelAllowed, tokenStatus } from './governed-token.ts'

/** The plain definition: `*` is nothing, or one more character. */
function matchesByDefinition(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  if (pattern[0] === '*') {
    return matchesByDefinition(pattern.slice(1), text) || (text !== '' && matchesByDefinition(pattern, text.slice(1)))
  }
  return text !== '' && pattern[0] === text[0] && matchesByDefinition(pattern.slice(1), text.slice(1))
}

test('a glob matches as defined', () => {
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 })
  fc.assert(
    fc.property(pattern, text, (one, other) => {
      expect(globMatches(one, other)).toBe(matchesByDefinition(one, other))
    }),
    { numRuns: 5000 },
  )
})

test('an adversarial glob takes linear, not exponential, time', () => {
  expect(globMatches(`${'*a'.repeat(100)}*b`, 'a'.repeat(10_000))).toBe(false)
})

test('special characters of other pattern languages match themselves', () => {
  expect(globMatches('gpt-4.?[a]', 'gpt-4.?[a]')).toBe(true)
  expect(globMatches('gpt-4.', 'gpt-4x')).toBe(false)
})

test('no filter allows every model, and a filter what one of its patterns matches', () => {
  expect(modelAllowed(null, 'anything')).toBe(true)
  expect(modelAllowed(['a', 'gpt-*'], 'gpt-4')).toBe(true)
  expect(modelAllowed(['a', 'gpt-*'], 'claude')).toBe(false)
})

test('a status begins at its instant, not a millisecond before', () => {
  const none = { expiresAt: null, rotatedAt: null, revokedAt: null }
  expect(tokenStatus(none, Number.MAX_SAFE_INTEGER)).toBe('active')
  expect(tokenStatus({ ...none, expiresAt: 10 }, 9)).toBe('active')
  expect(tokenStatus({ ...none, expiresAt: 10 }, 10)).toBe('expired')
  expect(tokenStatus({ ...none, rotatedAt: 10 }, 9)).toBe('active')
  expect(tokenStatus({ ...none, rotatedAt: 10 }, 10)).toBe('rotated')
})

test('revoked takes precedence over rotated, and rotated over expired', () => {
  expect(tokenStatus({ expiresAt: 1, rotatedAt: 1, revokedAt: 1 }, 5)).toBe('revoked')
  expect(tokenStatus({ expiresAt: 1, rotatedAt: 1, revokedAt: null }, 5)).toBe('rotated')
})
