import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventStream, eventIdOf } from './event-stream.ts'

const textOf = (stream: ReadableStream<Uint8Array> | null): Promise<string> => new Response(stream).text()
const said = (text: string): string[] => [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data)

test('resumes after any broken connection with the following events, once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 30 }), fc.boolean(), fc.nat(31), async (numbers, primed, at) => {
      const stream = new EventStream(3, primed ? 'primed' : 'resumable')
      for (const number of numbers) stream.send(String(number))
      stream.end()
      const all = await textOf(stream.attach(0))
      const ids = [...all.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id)
      expect(said(all)).toEqual(numbers.map(String))
      expect(ids).toHaveLength(numbers.length + (primed ? 1 : 0))
      const event = Math.min(at, ids.length)
      const seen = all.split('\n\n').slice(0, event).join('\n\n')
      const rest = await textOf(stream.attach(event))
      expect(said(`${seen}\n\n${rest}`)).toEqual(numbers.map(String))
    }),
    { numRuns: 50 },
  )
})

test('keeps events without a connection for the next one, which gets only new ones', async () => {
  const stream = new EventStream(0, 'resumable')
  stream.send('1')
  const first = stream.attach()
  stream.send('2')
  const second = stream.attach()
  stream.send('3')
  stream.end()
  expect(said(await textOf(first))).toEqual(['1', '2'])
  expect(said(await textOf(second))).toEqual(['3'])
})

test('keeps no more events than the limits and reports a gap', async () => {
  const stream = new EventStream(0, 'resumable')
  for (let number = 0; number < 400; number++) stream.send('x'.repeat(8192))
  expect(stream.size).toBeLessThanOrEqual(1024 * 1024)
  expect(stream.attach(1)).toBeNull()
  expect(stream.attach(401)).toBeNull()
  const large = 'y'.repeat(3 * 1024 * 1024)
  stream.send(large)
  stream.end()
  expect(said(await textOf(stream.attach(400)))).toEqual([large])
})

test('gives the kept events to a first connection, however many were sent before', async () => {
  const stream = new EventStream(0, 'primed')
  for (let number = 0; number < 400; number++) stream.send(String(number))
  stream.end()
  const given = said(await textOf(stream.attach()))
  expect(given).toHaveLength(256)
  expect(given.at(-1)).toBe('399')
  const first = new EventStream(1, 'primed')
  first.send('x'.repeat(2 * 1024 * 1024))
  first.end()
  expect(said(await textOf(first.attach()))).toHaveLength(1)
})

test('closes a connection that does not read, and reports the gap', async () => {
  const stream = new EventStream(0, 'resumable')
  const unread = stream.attach()
  for (let number = 0; number < 20; number++) stream.send('x'.repeat(512 * 1024))
  expect(stream.attached).toBe(false)
  const [last = ''] = (await textOf(unread)).match(/^id: .+$/gm)?.slice(-1) ?? []
  const resumed = stream.attach(eventIdOf(last.slice(4))?.event)
  // What was dropped between is more than is kept: the caller is told instead of given a part.
  expect(resumed).toBeNull()
})

test('refuses a malformed event id', () => {
  for (const text of ['', '1', '1-', 'a-1', '1-1-1', '-1-1']) expect(eventIdOf(text)).toBeNull()
})
