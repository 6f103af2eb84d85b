/** What becomes of slots when workers end, are killed, or lose their host. */
import { expect, test } from 'bun:test'
import { attempt, one, world } from '../testing/rates.ts'

test('a worker that was killed goes on at once with exactly what it had left', async () => {
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

test('a worker that was killed while others use the limit leaves them what it had not used', async () => {
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

test('what a worker that ends had left is at once that of a new one, and what it had used when it is cold', async () => {
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

test('a worker that ends and starts again is told nothing twice', async () => {
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

test('a worker hands back what nobody used for ten seconds, so that its loss then costs no more than was used', async () => {
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

test('a refusal says how many slots are held by workers that do not answer', async () => {
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

test('a worker whose host crashed gets back what it held when that can be cold, counted from when it was last heard of', async () => {
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
