/**
 * What processes took of the processor, by thread and in nanoseconds: /proc/PID/task/TID/schedstat of Linux (kernel
 * document scheduler/sched-stats). Where the kernel keeps no such file, the hundredths of a second of `stat` are read
 * instead. Threads that end between two looks take their last time with them.
 */
import { readdirSync, readFileSync } from 'node:fs'

interface Thread {
  name: string
  isMain: boolean
  nanoseconds: number
  /** Of them in the kernel; counted by the tick, so true for seconds and not for less. */
  kernelNanoseconds: number
  /** Voluntary and involuntary ones. */
  switches: number
}

/** Threads by their number, which Linux gives only once at a time. */
export type Threads = ReadonlyMap<string, Thread>

/** What was spent between two looks. Times are in microseconds. */
export interface Spent {
  total: number
  main: number
  others: number
  byThread: Readonly<Record<string, { total: number; kernel: number }>>
  switches: number
}

const tick = 1e7

/** Threads of a pool are numbered: they count as one. */
export const plainThread = (name: string): string => name.trim().replace(/ ?\d+$/, '')

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // The thread has ended, or the kernel does not keep this file.
    return ''
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    // The process has ended.
    return []
  }
}

function lookAtThread(pid: number, id: string): Thread {
  const path = `/proc/${pid}/task/${id}`
  const stat = read(`${path}/stat`)
  const [user = 0, kernel = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  const [ran = ''] = read(`${path}/schedstat`).split(' ')
  const switches = read(`${path}/status`).matchAll(/ctxt_switches:\s+(\d+)/g)
  return {
    name: plainThread(read(`${path}/comm`)),
    isMain: id === String(pid),
    nanoseconds: ran === '' ? (user + kernel) * tick : Number(ran),
    kernelNanoseconds: kernel * tick,
    switches: [...switches].reduce((sum, [, count]) => sum + Number(count), 0),
  }
}

export const lookAtThreads = (pids: readonly number[]): Threads =>
  new Map(pids.flatMap((pid) => threadsOf(pid).map((id) => [id, lookAtThread(pid, id)] as const)))

/** What the processes have spent since an earlier look at them. */
export function spentSince(before: Threads, pids: readonly number[]): Spent {
  return difference(before, lookAtThreads(pids))
}

export function difference(before: Threads, after: Threads): Spent {
  const byThread: Record<string, { total: number; kernel: number }> = {}
  let [main, others, switches] = [0, 0, 0]
  for (const [id, thread] of after) {
    const earlier = before.get(id)
    const total = (thread.nanoseconds - (earlier?.nanoseconds ?? 0)) / 1000
    const kernel = (thread.kernelNanoseconds - (earlier?.kernelNanoseconds ?? 0)) / 1000
    if (thread.isMain) main += total
    else others += total
    switches += thread.switches - (earlier?.switches ?? 0)
    const name = thread.isMain ? mainThread : thread.name
    const known = byThread[name] ?? { total: 0, kernel: 0 }
    byThread[name] = { total: known.total + total, kernel: known.kernel + kernel }
  }
  return { total: main + others, main, others, byThread, switches }
}

export const mainThread = 'main'

/** The thread of Bun's that speaks HTTP with providers. */
export const httpThread = 'HTTP Client'
