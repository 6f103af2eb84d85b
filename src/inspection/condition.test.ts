import { expect, test } from 'bun:test'
import { compileCondition, longestCondition } from './condition.ts'

const compile = (expression: string) => compileCondition(expression, { variable: 'claims', param: 'condition' })

const holds = (expression: string, claims: Record<string, unknown>) => compile(expression)(claims)

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
  expect(() => compile('claims.a ==')).toThrow('not valid')
  expect(() => compile('request.model == "a"')).toThrow('not valid')
  expect(() => compile('"text"')).toThrow('true or false')
  expect(() => compile('claims.a.matches("(a+)+$")')).toThrow('matches()')
  expect(() => compile('claims.a.exists(x, x == 1)')).toThrow('exists()')
  expect(() => compile(`claims.a == "${'a'.repeat(longestCondition)}"`)).toThrow('longer')
})
