import { expect, test } from 'bun:test'
import { samplesOf } from './cpu-profile.ts'
import type { Frame } from './samples.ts'

const frame = (functionName: string, url = '') => ({ functionName, url })
const nodes = [
  { id: 1, callFrame: frame('(root)'), children: [2, 5, 6] },
  { id: 2, callFrame: frame('govern', 'file:///root/src/gateway/govern.ts'), children: [3] },
  { id: 3, callFrame: frame('step', 'file:///root/src/events/log/chain.ts'), children: [4] },
  { id: 4, callFrame: frame('fetch') },
  { id: 5, callFrame: frame('', 'file:///root/node_modules/zod/core.js') },
  { id: 6, callFrame: frame('(idle)') },
]
const text = JSON.stringify({
  nodes,
  startTime: 1_000_000,
  samples: [2, 3, 4, 5, 6, 4],
  timeDeltas: [1000, 1000, 2000, 3000, 1000, 9000],
})

const govern: Frame = { kind: 'javascript', name: 'govern src/gateway/govern.ts' }
const step: Frame = { kind: 'javascript', name: 'step src/events/log/chain.ts' }

test('gives the stacks of the main thread with the time of each, without idle time', () => {
  expect(samplesOf(text, '/root/', 0, 1008)).toEqual([
    { thread: 'main', frames: [govern], weight: 1000 },
    { thread: 'main', frames: [govern, step], weight: 1000 },
    { thread: 'main', frames: [govern, step, { kind: 'fetch', name: 'fetch' }], weight: 2000 },
    { thread: 'main', frames: [{ kind: 'javascript', name: 'anonymous node_modules/zod/core.js' }], weight: 3000 },
  ])
})

test('counts only samples between two moments', () => {
  expect(samplesOf(text, '/root/', 1010, 1020)).toMatchObject([{ weight: 9000 }])
})
