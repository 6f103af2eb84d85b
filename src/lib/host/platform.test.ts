import { expect, test } from 'bun:test'
import {
  canSharePort,
  filesHaveModes,
  openFilesOf,
  readBootId,
  readLockTable,
  readUptime,
  signalGroup,
} from './platform.ts'

test('reads what the kernel says of this host', () => {
  expect(readUptime()).toBeGreaterThan(1000)
  expect(readBootId()).toMatch(/^[0-9a-f-]{36}$/)
  expect(readLockTable()).not.toBeNull()
  expect(openFilesOf(process.pid)?.length).toBeGreaterThan(2)
  expect(openFilesOf(2 ** 30)).toBeNull()
  expect([canSharePort, filesHaveModes]).toEqual([true, true])
})

test('ends a process with those that it has started', async () => {
  const script = 'sleep 60 & echo $!; wait'
  const parent = Bun.spawn(['sh', '-c', script], { stdout: 'pipe', detached: true })
  const { value } = await parent.stdout.getReader().read()
  const child = Number(new TextDecoder().decode(value).trim())
  signalGroup(parent.pid, 'SIGKILL')
  await parent.exited
  const isGone = () => openFilesOf(child) === null || (openFilesOf(child)?.length ?? 0) === 0
  for (let tries = 0; tries < 100 && !isGone(); tries++) await Bun.sleep(20)
  expect(isGone()).toBe(true)
  expect(() => signalGroup(parent.pid, 'SIGKILL')).not.toThrow()
})
