import { expect, test } from 'bun:test'
import { compileClaims, longestCondition } from './claims-condition.ts'

const holds = (expression: string, claims: Record<string, unknown>) => compileClaims(expression)(claims)

test('compares claims of any kind', () => {
  expect(holds('claims.repository == "acme/app"', { repository: 'acme/app' })).toBe(true)
  expect(holds('claims.repository == "acme/app"', { repository: 'acme/other' })).toBe(false)
  expect(holds('claims.ref.startsWith("refs/heads/")', { ref: 'refs/heads/main' })).toBe(true)
  expect(holds('"admins" in claims.groups', { groups: ['users', 'admins'] })).toBe(true)
  expect(holds('claims["kubernetes.io"].namespace == "prod"', { 'kubernetes.io': { namespace: 'prod' } })).toBe(true)
})

test('does not hold when it names a claim that is not there, or of another kind', () => {
  expect(holds('claims.repository == "acme/app"', {})).toBe(false)
  expect(holds('claims.ref.startsWith("refs/")', { ref: 7 })).toBe(false)
})

test('refuses what is no condition, names something else, or is not bounded', () => {
  expect(() => compileClaims('claims.a ==')).toThrow('not valid')
  expect(() => compileClaims('request.model == "a"')).toThrow('not valid')
  expect(() => compileClaims('"text"')).toThrow('true or false')
  expect(() => compileClaims('claims.a.matches("(a+)+$")')).toThrow('matches()')
  expect(() => compileClaims('claims.a.exists(x, x == 1)')).toThrow('exists()')
  expect(() => compileClaims(`claims.a == "${'a'.repeat(longestCondition)}"`)).toThrow('longer')
})
