import { expect, test } from 'bun:test'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { sealCursor } from './cursor.ts'
import { cutPage, pageLimit, startOf } from './page.ts'

test.each([
  ['1', 1],
  ['100', 100],
  [undefined, 100],
])('a limit of %p is %p', (given, limit) => {
  expect(pageLimit.parse(given)).toBe(limit)
})

test.each(['', '0', '101', '1e1', '0x10', ' 5', '5 ', '+5', '05', '5.0', '-1', 'ten'])(
  'a limit of %p is refused',
  (given) => {
    expect(pageLimit.safeParse(given).success).toBe(false)
  },
)

test('describes the bounds of a limit', () => {
  expect(z.toJSONSchema(pageLimit, { io: 'input', unrepresentable: 'any' })).toMatchObject({
    type: 'integer',
    minimum: 1,
    maximum: 100,
  })
})

const filters = { list: 'things' }
const [first, second] = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002']

test('accepts only the exact text of a cursor', () => {
  const cursor = cutPage([{ id: first }, { id: second }], 1, filters).next_cursor ?? ''
  expect(startOf(cursor, filters)).toBe(first)
  const spaced = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(cursor, 'base64url').toString()), null, 1))
  const more = sealCursor({ after: first, more: 1 }, filters)
  for (const forged of [`${cursor}A`, `${cursor}=`, `${cursor}!`, ` ${cursor}`, spaced.toString('base64url'), more]) {
    expect(() => startOf(forged, filters)).toThrow(new Failure('invalid_cursor', { param: 'cursor' }))
  }
})

test('a cursor of which any one character is another is refused', () => {
  const cursor = cutPage([{ id: first }, { id: second }], 1, filters).next_cursor ?? ''
  for (let at = 0; at < cursor.length; at += 1) {
    const other = cursor[at] === 'A' ? 'B' : 'A'
    const mutated = cursor.slice(0, at) + other + cursor.slice(at + 1)
    expect(() => startOf(mutated, filters)).toThrow(new Failure('invalid_cursor', { param: 'cursor' }))
  }
})

test.each(['0', '-1', '101', 'ten', '1.5'])('what is said of a limit of %p names its bounds', (given) => {
  expect(pageLimit.safeParse(given).error?.issues[0]?.message).toBe('Write a whole number from 1 to 100')
})
