import { expect, test } from 'bun:test'
import { difference, lookAtThreads, spentSince } from './threads.ts'

const thread = (name: string, isMain: boolean, microseconds: number, switches: number) => ({
  ...{ name, isMain, switches },
  nanoseconds: microseconds * 1000,
  kernelNanoseconds: microseconds * 500,
})

test('tells the main thread from others, and counts threads that began meanwhile from 0', () => {
  const before = new Map([
    ['1', thread('gatehouse', true, 10, 1)],
    ['2', thread('HTTP Client', false, 5, 2)],
    ['3', thread('JITWorker', false, 7, 3)],
  ])
  const after = new Map([
    ['1', thread('gatehouse', true, 30, 5)],
    ['2', thread('HTTP Client', false, 9, 2)],
    ['4', thread('HTTP Client', false, 6, 1)],
  ])
  expect(difference(before, after)).toEqual({
    total: 30,
    main: 20,
    others: 10,
    switches: 5,
    byThread: { main: { total: 20, kernel: 10 }, 'HTTP Client': { total: 10, kernel: 5 } },
  })
})

test('measures what this process spends', () => {
  const before = lookAtThreads([process.pid])
  const { user: userBefore, system: systemBefore } = process.cpuUsage()
  while (process.cpuUsage().user - userBefore < 30_000) JSON.parse(JSON.stringify({ some: ['work'] }))
  const { user, system } = process.cpuUsage()
  const { total, main } = spentSince(before, [process.pid])
  const wanted = user - userBefore + system - systemBefore
  expect(total).toBeGreaterThan(wanted * 0.5)
  expect(total).toBeLessThan(wanted * 2 + 20_000)
  expect(main).toBeGreaterThan(0)
})

test('gives nothing for a process that has ended', async () => {
  const child = Bun.spawn(['true'])
  await child.exited
  expect(spentSince(new Map(), [child.pid]).total).toBe(0)
})
