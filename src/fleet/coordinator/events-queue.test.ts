import { expect, test } from 'bun:test'
import { IngestQueue } from './events-queue.ts'

test('takes batches one after the other and refuses one too many with a retry', async () => {
  const queue = new IngestQueue({ atOnce: 1, most: 2 })
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = queue.run(async () => {
    order.push('first begins')
    await gate.promise
    order.push('first ends')
  })
  const second = queue.run(async () => {
    order.push('second')
    throw new RangeError('of its own')
  })
  await expect(queue.run(async () => undefined)).rejects.toMatchObject({
    ...{ code: 'dependency_unavailable', status: 503, retryAfter: 1 },
  })
  gate.resolve()
  await first
  await expect(second).rejects.toThrow('of its own')
  expect(order).toEqual(['first begins', 'first ends', 'second'])
  expect(await queue.run(async () => 'again')).toBe('again')
})
