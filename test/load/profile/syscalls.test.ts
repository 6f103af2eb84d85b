import { expect, test } from 'bun:test'
import { perfCount, straceCounts } from './syscalls.ts'

const table = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 69.84    3.606340         674      5344       848 futex
 10.65    0.550225          85      6402           epoll_pwait2
------ ----------- ----------- --------- --------- ----------------
100.00    5.164072          86     11746       848 total
`

test('reads the calls of strace with and without errors, a request, and not their total', () => {
  expect(straceCounts(table, 1000)).toEqual({ futex: 5.344, epoll_pwait2: 6.402 })
  expect(straceCounts('', 1000)).toBeNull()
})

test('reads the count of perf stat, and null where perf may not count', () => {
  expect(perfCount('12345,,raw_syscalls:sys_enter,100,100.00,,\n', 100)).toBe(123.45)
  expect(perfCount('<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n', 100)).toBeNull()
  expect(perfCount('event syntax error', 100)).toBeNull()
})
