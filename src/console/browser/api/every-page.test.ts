import { expect, test } from 'bun:test'
import { everyPage } from './every-page.ts'

test('reads one page after the other until there is no further cursor', async () => {
  const asked: (string | null)[] = []
  const pages = new Map<string | null, { items: number[]; next_cursor: string | null }>([
    [null, { items: [1, 2], next_cursor: 'second' }],
    ['second', { items: [3], next_cursor: null }],
  ])
  const read = async ({ cursor }: { cursor: string | null }) => {
    asked.push(cursor)
    return pages.get(cursor) ?? { items: [], next_cursor: null }
  }
  expect(await everyPage(read, ({ items }) => items)).toEqual([1, 2, 3])
  expect(asked).toEqual([null, 'second'])
})

test('a refused page refuses the whole list', async () => {
  const read = async ({ cursor }: { cursor: string | null }) => {
    if (cursor !== null) throw new Error('refused')
    return { items: [1], next_cursor: 'second' }
  }
  await expect(everyPage(read, ({ items }) => items)).rejects.toThrow('refused')
})
