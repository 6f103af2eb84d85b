import { expect, test } from 'bun:test'
import { noAttribution, ownersOf } from './cpu-profile.ts'

const frame = (functionName: string, url = '') => ({ functionName, url })
const nodes = [
  { id: 1, callFrame: frame('(root)'), children: [2, 5] },
  { id: 2, callFrame: frame('govern', 'file:///root/src/gateway/govern.ts'), children: [3] },
  { id: 3, callFrame: frame('step', 'file:///root/src/events/log/chain.ts'), children: [4] },
  { id: 4, callFrame: frame('hash') },
  { id: 5, callFrame: frame('', 'file:///root/node_modules/zod/core.js') },
]
const text = JSON.stringify({
  nodes,
  startTime: 1_000_000,
  samples: [2, 3, 4, 5, 1, 4],
  timeDeltas: [1000, 1000, 2000, 3000, 1000, 9000],
})

test('attributes native time to the repository function that called it', () => {
  expect(ownersOf(text, '/root/src/', 0, 1008)).toEqual([
    { ...noAttribution, share: 0.5 },
    { file: 'events/log/chain.ts', name: 'step', share: 0.375 },
    { file: 'gateway/govern.ts', name: 'govern', share: 0.125 },
  ])
})

test('counts only samples between two moments', () => {
  expect(ownersOf(text, '/root/src/', 1010, 1020)).toEqual([{ file: 'events/log/chain.ts', name: 'step', share: 1 }])
})
