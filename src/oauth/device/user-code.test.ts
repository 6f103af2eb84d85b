import { expect, test } from 'bun:test'
import { makeUserCode, readUserCode } from './user-code.ts'

const bytes = (size: number) => crypto.getRandomValues(new Uint8Array(size))

test('a user code is eight letters of twenty, each as likely as another', () => {
  const counts = new Map<string, number>()
  for (let index = 0; index < 5000; index += 1) {
    const code = makeUserCode(bytes)
    expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    for (const letter of code.replace('-', '')) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  // 40,000 letters: 2,000 of each, with a standard deviation of 44.
  expect(counts.size).toBe(20)
  for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(300)
})

test('a byte that would favour a letter is left out', () => {
  let call = 0
  const source = (size: number) => new Uint8Array(size).fill(call++ === 0 ? 255 : 0)
  expect(makeUserCode(source)).toBe('BBBB-BBBB')
  expect(call).toBe(2)
})

test('reads a code in any case, with any dash or blank', () => {
  for (const typed of ['WDJB-MJHT', 'wdjbmjht', ' WDJB MJHT ', 'wd-jb–mj—ht', 'WDJB\u2011MJHT']) {
    expect(readUserCode(typed)).toBe('WDJB-MJHT')
  }
})

test('what cannot be a code is none', () => {
  for (const typed of ['', 'WDJB-MJH', 'WDJB-MJHTX', 'AEIO-UUUU', 'WDJB_MJHT', '1234-5678', 'ẞDJB-MJHT']) {
    expect(readUserCode(typed)).toBeNull()
  }
})
