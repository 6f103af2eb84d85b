import { expect, test } from 'bun:test'
import { NotificationQueue } from './notification-queue.ts'

test('sends notifications in order and bounds their number and size', async () => {
  const notices = new NotificationQueue()
  const said: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  notices.add({}, () => promise)
  const taken = Array.from({ length: 300 }, (_, index) => notices.add({}, async () => void said.push(index)))
  expect(taken.filter(Boolean)).toHaveLength(255)
  resolve()
  await notices.flushed()
  expect(said).toEqual(Array.from({ length: 255 }, (_, index) => index))
  const large = { data: 'x'.repeat(600_000) }
  const again = Promise.withResolvers<void>()
  expect([1, 2, 3].map(() => notices.add(large, () => again.promise))).toEqual([true, true, false])
  again.resolve()
  await notices.flushed()
  expect(notices.add(large, async () => undefined)).toBe(true)
})

test('skips a notification that cannot be sent', async () => {
  const notices = new NotificationQueue()
  const said: string[] = []
  notices.add({}, () => Promise.reject(new Error('It broke')))
  notices.add({}, async () => void said.push('the next'))
  await notices.flushed()
  expect(said).toEqual(['the next'])
})
