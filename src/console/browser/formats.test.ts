import { expect, test } from 'bun:test'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { milliseconds } = await import('./formats.ts')

test('gives every tick of a time axis another label', () => {
  for (const step of [0.2, 0.5, 1, 2, 5, 20, 250, 500, 2000]) {
    const marks = Array.from({ length: 5 }, (_, index) => milliseconds(index * step))
    expect([step, new Set(marks).size]).toEqual([step, 5])
  }
  expect([1, 1.5, 1.94, 9.96, 12.4].map(milliseconds)).toEqual(['1 ms', '1.5 ms', '1.9 ms', '10 ms', '12 ms'])
})
