import { expect, test } from 'bun:test'
import { answeredBy, isTooDeep } from './message-depth.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

test('allows server messages as deep as messages of a caller', () => {
  expect(isTooDeep(`{"result":${nested(63)}}`)).toBe(false)
  expect(isTooDeep(`{"result":${nested(64)}}`)).toBe(true)
  expect(isTooDeep(`{"result":"${nested(64)}"}`)).toBe(false)
})

test('finds the request id of a deep answer without parsing it', () => {
  const deep = nested(100_000)
  expect(answeredBy(`{"result":${deep}, "id": 7 }`)).toBe(7)
  expect(answeredBy(`{"id":7,"error":${deep}}`)).toBe(7)
  expect(answeredBy(`{"result":{"id":7,"x":${deep}}}`)).toBe(null)
  expect(answeredBy(`{"id":7,"method":"ping","params":${deep}}`)).toBe(null)
  expect(answeredBy(`{"id":${deep}}`)).toBe(null)
  expect(answeredBy(deep)).toBe(null)
})
