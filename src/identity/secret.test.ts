import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import {
  hashSecret,
  holdsSecret,
  makeSecret,
  type SecretKind,
  secretHint,
  secretKind,
  secretPrefixes,
} from './secret.ts'

const kinds = Object.keys(secretPrefixes) as SecretKind[]
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Random bytes that fast-check can repeat. */
const seeded = (seed: number) => {
  let state = seed
  return (size: number) =>
    Uint8Array.from({ length: size }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return state >>> 24
    })
}

test('makes a secret with its prefix and 36 base62 characters and recognises its kind', () => {
  for (const kind of kinds) {
    const secret = makeSecret(kind, randomBytes)
    expect(secret).toMatch(new RegExp(`^${secretPrefixes[kind]}[0-9A-Za-z]{36}$`))
    expect(secretKind(secret)).toBe(kind)
  }
})

test('refuses a secret with any one character changed', () => {
  const change = fc.tuple(fc.integer(), fc.constantFrom(...kinds), fc.nat(), fc.constantFrom(...base62))
  fc.assert(
    fc.property(change, ([seed, kind, place, character]) => {
      const secret = makeSecret(kind, seeded(seed))
      const at = place % secret.length
      fc.pre(secret[at] !== character)
      expect(secretKind(secret.slice(0, at) + character + secret.slice(at + 1))).toBeNull()
    }),
    { numRuns: 2000 },
  )
})

test('refuses a secret that is shorter, longer, padded or of another alphabet', () => {
  const secret = makeSecret('token', randomBytes)
  for (const other of [
    '',
    'gth_',
    secret.slice(0, -1),
    `${secret}0`,
    ` ${secret}`,
    `${secret}\n`,
    secret.replace('_', '-'),
  ]) {
    expect(secretKind(other)).toBeNull()
  }
})

test('makes a hint of twelve characters and a SHA-256 hash in hex', () => {
  const secret = makeSecret('token', randomBytes)
  expect(secretHint(secret)).toBe(secret.slice(0, 12))
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})

test('finds a secret anywhere in a text, also after a lookalike', () => {
  const secret = makeSecret('session', randomBytes)
  for (const text of [secret, `see ${secret}.`, `x${secret}y`, `gth_${'a'.repeat(33)}${secret}`]) {
    expect(holdsSecret(text)).toBe(true)
  }
  for (const text of ['', 'gth_', secret.slice(0, -1), `${secret.slice(0, -1)}?`]) expect(holdsSecret(text)).toBe(false)
})
