import { expect, test } from 'bun:test'
import { hashPassword, passwordFault, verifyPassword } from './password.ts'

test('a password has 12 to 256 characters, counted as people count them', () => {
  expect(passwordFault('abcdefghijk', 'a@b.example')).toContain('12 to 256')
  expect(passwordFault('abcdefghijkl', 'a@b.example')).toBeNull()
  expect(passwordFault('𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦', 'a@b.example')).toContain('12 to 256')
  expect(passwordFault('abcd'.repeat(64), 'a@b.example')).toBeNull()
  expect(passwordFault(`${'abcd'.repeat(64)}e`, 'a@b.example')).toContain('12 to 256')
})

test('refuses a password that is the e-mail address or one repeated character', () => {
  expect(passwordFault('Somebody@example.com', 'somebody@example.com')).toContain('e-mail')
  expect(passwordFault('aaaaaaaaaaaaaaaa', 'a@b.example')).toContain('different')
})

test('hashes with argon2id at the minimum parameters of OWASP, and verifies only its password', async () => {
  const hash = await hashPassword('correct horse battery staple')
  expect(hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
  expect(await verifyPassword('correct horse battery staple', hash)).toBe(true)
  expect(await verifyPassword('correct horse battery stapler', hash)).toBe(false)
})

test('accepts the same characters in another Unicode composition', async () => {
  const hash = await hashPassword('caf\u00e9 caf\u00e9 caf\u00e9')
  expect(await verifyPassword('cafe\u0301 cafe\u0301 cafe\u0301', hash)).toBe(true)
})

test('a person without a password cannot sign in with an empty or an endless one', async () => {
  expect(await verifyPassword('', null)).toBe(false)
  expect(await verifyPassword('x'.repeat(100_000), null)).toBe(false)
})
