import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { deriveKey, sealSame, unsealSame } from './seal.ts'

const key = deriveKey('secret', 'a test')

test('seals the same text in the same context in the same way, and opens it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (plain, context) => {
      const sealed = sealSame(key, plain, context)
      expect(sealed).toMatch(/^[0-9a-f]+$/)
      expect(sealSame(key, plain, context)).toBe(sealed)
      expect(unsealSame(key, sealed, context)).toBe(plain)
    }),
  )
})

test('opens nothing with another key or context, changed, cut, or written in another way', () => {
  const sealed = sealSame(key, 'a text', 'context')
  expect(unsealSame(deriveKey('secret', 'another'), sealed, 'context')).toBeNull()
  expect(unsealSame(key, sealed, 'contex')).toBeNull()
  for (let at = 0; at < sealed.length; at++) {
    const other = sealed[at] === '0' ? '1' : '0'
    expect(unsealSame(key, sealed.slice(0, at) + other + sealed.slice(at + 1), 'context')).toBeNull()
    expect(unsealSame(key, sealed.slice(0, at), 'context')).toBeNull()
  }
  for (const form of [sealed.toUpperCase(), `${sealed}00`, `${sealed}zz`, '', 'zz']) {
    expect(unsealSame(key, form, 'context')).toBeNull()
  }
})

test('does not let a text pass from its context into the sealed text', () => {
  expect(sealSame(key, 'bc', 'a')).not.toBe(sealSame(key, 'c', 'ab'))
})
