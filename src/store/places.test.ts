import { expect, test } from 'bun:test'
import { places } from './places.ts'

test('runs a limited number at once and the others in order of arrival, and skips cancelled work', async () => {
  const inPlace = places(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  let wanted = true
  const run = (index: number, still = () => true) =>
    inPlace(async () => {
      begun.push(index)
      await new Promise<void>((resolve) => ends.push(resolve))
      return index
    }, still)
  const all = [run(0), run(1), run(2), run(3, () => wanted).catch((error: DOMException) => error.name), run(4)]
  await Bun.sleep(0)
  expect(begun).toEqual([0, 1])
  wanted = false
  ends.shift()?.()
  await Bun.sleep(0)
  expect(begun).toEqual([0, 1, 2])
  ends.shift()?.()
  await Bun.sleep(0)
  expect(begun).toEqual([0, 1, 2, 4])
  for (const end of ends) end()
  expect(await Promise.all(all)).toEqual([0, 1, 2, 'TimeoutError', 4])
})

test('runs low priority work after other waiting work, but after at most three of them', async () => {
  const inPlace = places(1)
  const begun: string[] = []
  const run = (name: string, patient: boolean) =>
    inPlace(
      async () => {
        begun.push(name)
      },
      () => true,
      patient,
    )
  await Promise.all([
    run('first', false),
    ...['p1', 'p2'].map((name) => run(name, true)),
    ...['a', 'b', 'c', 'd'].map((name) => run(name, false)),
  ])
  expect(begun).toEqual(['first', 'a', 'b', 'c', 'p1', 'd', 'p2'])
})

test('work that fails leaves its place to the next', async () => {
  const inPlace = places(1)
  const failing = inPlace(
    () => Promise.reject(new Error('broken')),
    () => true,
  )
  const next = inPlace(
    async () => 'done',
    () => true,
  )
  await expect(failing).rejects.toThrow('broken')
  expect(await next).toBe('done')
})
