import { expect, test } from 'bun:test'
import { stopSignal } from './stop-signal.ts'

test('counts signals that come together as one request, and a later one as a second', () => {
  let now = 0
  const said: string[] = []
  const signal = stopSignal(
    { now: () => now, monotonic: () => now },
    () => said.push('asked'),
    () => said.push('insisted'),
  )
  signal()
  now = 900
  signal()
  expect(said).toEqual(['asked'])
  now = 1001
  signal()
  expect(said).toEqual(['asked', 'insisted'])
})
