import { expect, test } from 'bun:test'
import { attribute, attributeMainThread, byFunction, partOf, parts } from './attribution.ts'
import type { Frame, FrameKind, Sample } from './samples.ts'

const frames = (text: string): Frame[] =>
  text
    .split(' ')
    .filter((part) => part !== '')
    .map((part) => {
      const kinds: Readonly<Record<string, FrameKind>> = { k: 'kernel', n: 'native', f: 'fetch', j: 'javascript' }
      return { kind: kinds[part[0] ?? ''] ?? 'native', name: part.slice(1) }
    })
const sample = (thread: string, text: string, weight = 1): Sample => ({ thread, frames: frames(text), weight })

test('counts a sample of the main thread for the kernel, the runtime, fetch or JavaScript', () => {
  expect(partOf(sample('main', 'nloop jsend ffetch nsocket ksend'))).toBe('kernel, for the main thread')
  expect(partOf(sample('main', 'nloop nread'))).toBe('runtime, no JavaScript on the stack')
  expect(partOf(sample('main', 'nloop jsend ffetch nsocket'))).toBe('fetch, called from JavaScript')
  expect(partOf(sample('main', 'nloop jsend ffetch jread nparse'))).toBe('JavaScript and what else it calls')
  expect(partOf(sample('main', 'nloop jsend'))).toBe('JavaScript and what else it calls')
})

test('counts a sample of another thread for that thread, whatever is on its stack', () => {
  expect(partOf(sample('HTTP Client', 'nloop ksend'))).toBe('HTTP client thread, kernel')
  expect(partOf(sample('HTTP Client', 'nloop'))).toBe('HTTP client thread, itself')
  expect(partOf(sample('JITWorker', 'jcompile kfutex'))).toBe('other threads')
})

const samples = [
  sample('main', 'jread ffetch', 3),
  sample('main', 'jread', 2),
  sample('main', 'nloop kpoll', 4),
  sample('HTTP Client', 'nloop', 1),
]
const sumOf = (found: Readonly<Record<string, number>>): number =>
  Object.values(found).reduce((sum, value) => sum + value, 0)

test('shares the whole time among the parts, so that they add up to it', () => {
  const found = attribute(samples, 50)
  expect(Object.keys(found)).toEqual([...parts])
  expect(found['fetch, called from JavaScript']).toBe(15)
  expect(found['kernel, for the main thread']).toBe(20)
  expect(found['HTTP client thread, itself']).toBe(5)
  expect(sumOf(found)).toBeCloseTo(50, 9)
})

test('takes the times of threads and of the kernel from the system where the profiler sees the main thread alone', () => {
  const byThread = {
    main: { total: 30, kernel: 10 },
    'HTTP Client': { total: 12, kernel: 15 },
    JITWorker: { total: 3, kernel: 0 },
  }
  const found = attributeMainThread([sample('main', 'jread', 1), sample('main', 'jread ffetch', 3)], { byThread })
  expect(found['kernel, for the main thread']).toBe(10)
  expect(found['fetch, called from JavaScript']).toBe(15)
  expect(found['JavaScript and what else it calls']).toBe(5)
  expect(found['HTTP client thread, kernel']).toBe(12)
  expect(found['other threads']).toBe(3)
  expect(sumOf(found)).toBeCloseTo(45, 9)
})

test('gives every part 0 where there is no sample', () => {
  expect(sumOf(attribute([], 50))).toBe(0)
})

test('counts native code for the function that calls it, the largest first', () => {
  const found = byFunction([sample('main', 'jouter jinner nhash', 3), sample('main', 'jouter', 1), ...samples], 14)
  expect(found).toEqual([
    { name: 'read', time: 5 },
    { name: 'inner', time: 3 },
    { name: 'outer', time: 1 },
  ])
})
