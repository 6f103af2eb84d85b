import { expect, test } from 'bun:test'
import { base32, codeOfStep, otpauthUri, stepAt, stepOfCode } from './totp.ts'

const secret = new TextEncoder().encode('12345678901234567890')

test('makes the codes of RFC 6238 appendix B, cut to six digits', () => {
  const cases: [seconds: number, code: string][] = [
    [59, '287082'],
    [1111111109, '081804'],
    [1111111111, '050471'],
    [1234567890, '005924'],
    [2000000000, '279037'],
    [20000000000, '353130'],
  ]
  for (const [seconds, code] of cases) expect(codeOfStep(secret, stepAt(seconds * 1000))).toBe(code)
})

test('takes a code of the step before and after, and no step twice', () => {
  const now = 1_000_000_000_000
  const step = stepAt(now)
  for (const near of [step - 1, step, step + 1]) {
    expect(stepOfCode(secret, codeOfStep(secret, near), { now, after: 0 })).toBe(near)
  }
  for (const far of [step - 2, step + 2]) {
    expect(stepOfCode(secret, codeOfStep(secret, far), { now, after: 0 })).toBeNull()
  }
  expect(stepOfCode(secret, codeOfStep(secret, step), { now, after: step })).toBeNull()
  expect(stepOfCode(secret, '', { now, after: 0 })).toBeNull()
})

test('writes a secret as RFC 4648 does, and in a link', () => {
  expect(base32(new TextEncoder().encode('foobar'))).toBe('MZXW6YTBOI')
  expect(base32(secret)).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  const link = new URL(otpauthUri(secret, { issuer: 'Gatehouse', account: 'ann+1@example.com' }))
  expect(link.href).toStartWith('otpauth://totp/Gatehouse:ann%2B1%40example.com?')
  expect(link.searchParams.get('secret')).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
})
