/** What becomes of slots when workers end, are killed, or lose their host. */
import { expect, test } from 'bun:test'
import { attempt, one, world } from '../testing/rates.ts'

test('a killed worker goes on at once with exactly the slots it had left', async () => {
  const inside = world(100)
  inside.start('a')
  const passed: number[] = []
  for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 100)
  inside.start('a', 777)
  for (let index = 0; index < 100; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(100)
  await inside.until(inside.now + 58_000)
  for (let index = 0; index < 100; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(200)
})

test('a killed worker leaves its unused slots to the others', async () => {
  const inside = world(100)
  inside.start('a')
  inside.start('b')
  const passed: number[] = []
  for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 100)
  inside.start('a')
  for (let index = 0; index < 100; index++) attempt(inside, 'b', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(100)
})

test('the unused slots of a stopped worker go to a new worker at once, the used ones when they are cold', async () => {
  const inside = world(100)
  const ending = inside.start('a')
  const passed: number[] = []
  for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 100)
  await Promise.all([ending.drain(), inside.until(inside.now + 100)])
  inside.workers.delete('a')
  inside.start('b')
  for (let index = 0; index < 100; index++) attempt(inside, 'b', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(100)
})

test('a worker that stops and starts again reports its uses only once', async () => {
  const inside = world(100)
  const passed: number[] = []
  for (let start = 0; start < 3; start++) {
    const worker = inside.start('a')
    for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
    await inside.until(inside.now + 100)
    await Promise.all([worker.drain(), inside.until(inside.now + 100)])
  }
  inside.start('a')
  for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(100)
})

test('returns slots that were unused for ten seconds, so that the loss of the worker costs only used slots', async () => {
  const inside = world(100)
  const worker = inside.start('a')
  const passed: number[] = []
  for (let index = 0; index < 30; index++) attempt(inside, 'a', [one(100)], passed)
  await inside.until(inside.now + 10_100)
  worker.tick()
  await inside.until(inside.now + 100)
  inside.cut.add('a')
  inside.start('b')
  for (let index = 0; index < 100; index++) attempt(inside, 'b', [one(100)], passed)
  await inside.until(inside.now + 3000)
  expect(passed).toHaveLength(100)
})

test('a refusal says how many slots unreachable workers hold', async () => {
  const inside = world(100)
  inside.start('a')
  inside.start('b')
  attempt(inside, 'a', [one(100)], [])
  await inside.until(inside.now + 100)
  inside.cut.add('a')
  const refused = attempt(inside, 'b', [one(100)], [])
  await inside.until(inside.now + 3000)
  expect(refused.refused).toMatchObject({ reason: 'used', absent: 100 })
})

test('a worker with a crashed host gets its slots back one cool-down after its last message', async () => {
  const inside = world(10)
  inside.start('a')
  const passed: number[] = []
  attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 20_000)
  inside.start('a', 0, 'crash')
  const early = attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 3000)
  expect(early.refused).toMatchObject({ reason: 'used', absent: 10 })
  await inside.until(inside.now + 69_000)
  attempt(inside, 'a', [one(10)], passed)
  await inside.until(inside.now + 1000)
  expect(passed).toHaveLength(2)
})
