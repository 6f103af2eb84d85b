/** The thread that counts tokens: when it starts, what it answers, when it ends. */
import { expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { maxCountedBytes, ThreadTokenCounter, type TokenizerThread } from './token-counter.ts'

const bytes = (body: unknown) => new TextEncoder().encode(JSON.stringify(body))
const times = { countMs: 10_000, idleMs: 10_000 }

/** A thread that answers with `answer`, or never where there is none, and the log of what it was asked. */
function testThread(answer?: unknown) {
  const log: string[] = []
  const start = (): TokenizerThread => {
    const target = new EventTarget()
    log.push('started')
    return {
      addEventListener: target.addEventListener.bind(target),
      postMessage: () => {
        log.push('asked')
        if (answer !== undefined) {
          setTimeout(() => target.dispatchEvent(new MessageEvent('message', { data: answer })), 1)
        }
      },
      terminate: () => void log.push('ended'),
    }
  }
  return { log, start }
}

test('a thread counts one body after another and reads special tokens as text', async () => {
  // The product waits 3 s, which a busy machine may need to load the tables.
  const counter = new ThreadTokenCounter(undefined, times)
  const text = bytes({ input: '<|endoftext|> hello' })
  const [one, other, broken] = await Promise.all([
    counter.count('o200k_base', text),
    counter.count('cl100k_base', text),
    counter.count('o200k_base', new TextEncoder().encode('{')).catch((thrown: unknown) => thrown),
  ])
  expect(one).toBeGreaterThan(8)
  expect(other).toBeGreaterThan(8)
  expect(broken).toBeInstanceOf(Error)
}, 20_000)

test('starts no thread before the first count, and uses one thread for several counts', async () => {
  const { log, start } = testThread({ tokens: 7 })
  const counter = new ThreadTokenCounter(start, times)
  expect(log).toEqual([])
  expect(await Promise.all([1, 2].map(() => counter.count('o200k_base', bytes({}))))).toEqual([7, 7])
  expect(log).toEqual(['started', 'asked', 'asked'])
})

test('ends the thread when idle and starts another for the next count', async () => {
  const { log, start } = testThread({ tokens: 7 })
  const counter = new ThreadTokenCounter(start, { ...times, idleMs: 1 })
  await counter.count('o200k_base', bytes({}))
  await eventually(() => log.includes('ended'))
  await counter.count('o200k_base', bytes({}))
  expect(log.slice(0, 5)).toEqual(['started', 'asked', 'ended', 'started', 'asked'])
})

test('ends the thread of a count that takes too long and gives no count', async () => {
  const { log, start } = testThread()
  const counter = new ThreadTokenCounter(start, { ...times, countMs: 5 })
  expect(await counter.count('o200k_base', bytes({}))).toBeNull()
  expect(log).toEqual(['started', 'asked', 'ended'])
})

test('does not count a large body', async () => {
  const { log, start } = testThread({ tokens: 7 })
  const counter = new ThreadTokenCounter(start, times)
  expect(await counter.count('o200k_base', new Uint8Array(maxCountedBytes + 1))).toBeNull()
  expect(log).toEqual([])
})

test('gives no count to a body that waits too long behind others', async () => {
  const { log, start } = testThread()
  const counter = new ThreadTokenCounter(start, { ...times, countMs: 20 })
  const counts = await Promise.all(Array.from({ length: 10 }, () => counter.count('o200k_base', bytes({}))))
  expect(counts).toEqual(counts.map(() => null))
  expect(log.filter((each) => each === 'asked').length).toBeLessThan(3)
})
