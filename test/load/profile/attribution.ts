/**
 * Where the microseconds of a request go: the time that was measured is shared among parts that do not overlap, by what
 * a profiler saw, so that they add up to it.
 */
import { httpThread, mainThread } from '../rig/threads.ts'
import type { Sample } from './samples.ts'

export const parts = [
  'kernel, for the main thread',
  'runtime, no JavaScript on the stack',
  'fetch, called from JavaScript',
  'JavaScript and what else it calls',
  'HTTP client thread, kernel',
  'HTTP client thread, itself',
  'other threads',
] as const

export type Part = (typeof parts)[number]

/** Microseconds by part. */
export type Attribution = Readonly<Record<Part, number>>

/** Whose the time of a sample is. */
export function partOf({ thread, frames }: Sample): Part {
  const innermost = frames.at(-1)?.kind
  if (thread === httpThread) return innermost === 'kernel' ? 'HTTP client thread, kernel' : 'HTTP client thread, itself'
  if (thread !== mainThread) return 'other threads'
  if (innermost === 'kernel') return 'kernel, for the main thread'
  const caller = frames.findLastIndex(({ kind }) => kind === 'javascript')
  if (caller < 0) return 'runtime, no JavaScript on the stack'
  return frames[caller + 1]?.kind === 'fetch' ? 'fetch, called from JavaScript' : 'JavaScript and what else it calls'
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)

const none = (): Record<Part, number> => ({
  'kernel, for the main thread': 0,
  'runtime, no JavaScript on the stack': 0,
  'fetch, called from JavaScript': 0,
  'JavaScript and what else it calls': 0,
  'HTTP client thread, kernel': 0,
  'HTTP client thread, itself': 0,
  'other threads': 0,
})

/** Shares `total` by all samples: for a profiler that sees every thread and the kernel. */
export function attribute(samples: readonly Sample[], total: number): Attribution {
  const weights = none()
  for (const sample of samples) weights[partOf(sample)] += sample.weight
  const all = sum(Object.values(weights))
  for (const part of parts) weights[part] = all === 0 ? 0 : (weights[part] / all) * total
  return weights
}

export interface ThreadTimes {
  readonly byThread: Readonly<Record<string, { total: number; kernel: number }>>
}

/**
 * For a profiler that sees the main thread alone and not the kernel: the times of threads, and what each spent in the
 * kernel, are those that the kernel counted, and the samples share the rest of the main thread.
 */
export function attributeMainThread(samples: readonly Sample[], { byThread }: ThreadTimes): Attribution {
  const main = byThread[mainThread] ?? { total: 0, kernel: 0 }
  const http = byThread[httpThread] ?? { total: 0, kernel: 0 }
  // The kernel counts its own part by the tick, so that this may come out larger than the whole.
  const [kernel, httpKernel] = [Math.min(main.kernel, main.total), Math.min(http.kernel, http.total)]
  const all = sum(Object.values(byThread).map(({ total }) => total))
  const seen = samples.filter((sample) => sample.frames.at(-1)?.kind !== 'kernel')
  return {
    ...attribute(seen, main.total - kernel),
    'kernel, for the main thread': kernel,
    'HTTP client thread, kernel': httpKernel,
    'HTTP client thread, itself': http.total - httpKernel,
    'other threads': all - main.total - http.total,
  }
}

/** Functions by the time of themselves and of what is not JavaScript below them, the largest first. */
export function byFunction(samples: readonly Sample[], total: number): { name: string; time: number }[] {
  const times = new Map<string, number>()
  let all = 0
  for (const { thread, frames, weight } of samples) {
    all += weight
    if (thread !== mainThread) continue
    const name = frames.findLast(({ kind }) => kind === 'javascript')?.name
    if (name !== undefined) times.set(name, (times.get(name) ?? 0) + weight)
  }
  const found = [...times].map(([name, weight]) => ({ name, time: (weight / all) * total }))
  return found.toSorted((one, other) => other.time - one.time)
}
