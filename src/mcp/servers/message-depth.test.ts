import { expect, test } from 'bun:test'
import { answeredRequestId, isTooDeep } from './message-depth.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

test('allows server messages as deep as messages of a caller', () => {
  expect(isTooDeep(`{"result":${nested(63)}}`)).toBe(false)
  expect(isTooDeep(`{"result":${nested(64)}}`)).toBe(true)
  expect(isTooDeep(`{"result":"${nested(64)}"}`)).toBe(false)
})

test('finds the request id of a deep answer without parsing it', () => {
  const deep = nested(100_000)
  expect(answeredRequestId(`{"result":${deep}, "id": 7 }`)).toBe(7)
  expect(answeredRequestId(`{"id":7,"error":${deep}}`)).toBe(7)
  expect(answeredRequestId(`{"result":{"id":7,"x":${deep}}}`)).toBe(null)
  expect(answeredRequestId(`{"id":7,"method":"ping","params":${deep}}`)).toBe(null)
  expect(answeredRequestId(`{"id":${deep}}`)).toBe(null)
  expect(answeredRequestId(deep)).toBe(null)
})
