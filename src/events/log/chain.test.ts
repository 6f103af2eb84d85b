import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { chainNext, chainStart } from './chain.ts'

const sha256 = (...parts: (string | Uint8Array)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

test('hashes the previous digest, the number as eight bytes, and the digest of the body', () => {
  const first = sha256('gatehouse.events.v1\0worker')
  const number = Buffer.from([0, 0, 0, 0, 0, 0, 1, 2])
  expect(chainStart('worker')).toBe(first.toString('hex'))
  expect(chainNext(chainStart('worker'), 258, '{"a":1}')).toBe(sha256(first, number, sha256('{"a":1}')).toString('hex'))
})

test('another chain, number, body or past gives another digest', () => {
  const digests = [
    chainNext(chainStart('a'), 1, 'x'),
    chainNext(chainStart('b'), 1, 'x'),
    chainNext(chainStart('a'), 2, 'x'),
    chainNext(chainStart('a'), 1, 'y'),
    chainNext(chainNext(chainStart('a'), 1, 'x'), 2, 'x'),
  ]
  expect(new Set(digests).size).toBe(digests.length)
})

test('bytes and text of the same body give the same digest', () => {
  expect(chainNext(chainStart('a'), 1, new TextEncoder().encode('é'))).toBe(chainNext(chainStart('a'), 1, 'é'))
})
