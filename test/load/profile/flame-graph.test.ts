import { expect, test } from 'bun:test'
import { flameGraph } from './flame-graph.ts'
import type { Sample } from './samples.ts'

const samples: readonly Sample[] = [
  { thread: 'main', weight: 3, frames: [{ kind: 'javascript', name: 'send<T>' }] },
  {
    thread: 'main',
    weight: 1,
    frames: [
      { kind: 'javascript', name: 'send<T>' },
      { kind: 'fetch', name: 'fetch' },
    ],
  },
  { thread: 'JITWorker', weight: 4, frames: [] },
]

test('draws each function as wide as its share, below its caller, with its time', () => {
  const drawn = flameGraph('a & b', samples, 80)
  const boxes = [...drawn.matchAll(/<title>(.*?)<\/title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"/g)]
  const found = Object.fromEntries(boxes.map(([, title = '', x, y, width]) => [title, [x, y, width].map(Number)]))
  expect(found['all: 80.00 µs, 100.0 %']).toEqual([0, 34, 1600])
  expect(found['send&lt;T&gt;: 40.00 µs, 50.0 %']).toEqual([0, 68, 800])
  expect(found['fetch: 10.00 µs, 12.5 %']).toEqual([0, 85, 200])
  expect(found['thread JITWorker: 40.00 µs, 50.0 %']).toEqual([800, 51, 800])
  expect(drawn).toContain('a &amp; b: 80.0 µs a request')
})

test('draws an empty graph for no samples', () => {
  expect(flameGraph('none', [], 0)).toContain('</svg>')
})
