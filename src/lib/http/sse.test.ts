import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventsIn } from '../testing/event-stream.ts'
import { type SseFrame, SseSplitter, withData, withoutAsides } from './sse.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function framesOf(chunks: readonly Uint8Array[], limit = 1 << 20): SseFrame[] {
  const splitter = new SseSplitter(limit)
  const frames = chunks.flatMap((chunk) => splitter.push(chunk))
  const rest = splitter.end()
  return rest === null ? frames : [...frames, rest]
}

const readable = (frames: readonly SseFrame[]) =>
  frames.map(({ bytes, data }) => ({ text: decoder.decode(bytes), data }))

function splitAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)
  const chunks: Uint8Array[] = []
  let from = 0
  for (const place of [...places, bytes.length]) {
    chunks.push(bytes.subarray(from, place))
    from = place
  }
  return chunks
}

const line = fc.oneof(
  fc.constantFrom('data: {"a":1}', 'data:x', 'data', 'data: ', ': comment', 'event: ping', 'database: no', 'datä', ''),
  fc.string().map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
)
const runs = Number(process.env.GATEHOUSE_PROPERTY_RUNS ?? 500)
const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, lineEnd), { maxLength: 20 }), fc.string({ maxLength: 5 }))
  .map(([mark, lines, rest]) => (mark ? '\uFEFF' : '') + lines.map((parts) => parts.join('')).join('') + rest)

test('SseSplitter gives the same frames for every split, and together they are the bytes that came', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
      const bytes = encoder.encode(text)
      const whole = framesOf([bytes])
      expect(readable(framesOf(splitAt(bytes, cuts)))).toEqual(readable(whole))
      expect(Buffer.concat(whole.map((frame) => frame.bytes)).equals(bytes)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

/**
 * A stream's lines by themselves and as parts of one another, the end of each of any kind, and bytes that are no text.
 */
const anyBytes = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.tuple(line, lineEnd).map((parts) => encoder.encode(parts.join(''))) },
      { weight: 6, arbitrary: lineEnd.map((end) => encoder.encode(end)) },
      {
        weight: 2,
        arbitrary: fc.constantFrom('\uFEFF', '\uFEFFdata: marked\n', ' data: x\n').map((text) => encoder.encode(text)),
      },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }) },
    ),
    { maxLength: 30 },
  )
  .map((parts) => new Uint8Array(Buffer.concat(parts)))

/** The events of whole frames; what is left at the end is none. */
function eventsOf(chunks: readonly Uint8Array[]) {
  const splitter = new SseSplitter(1 << 20)
  return chunks
    .flatMap((chunk) => splitter.push(chunk))
    .concat(lastOf(splitter))
    .flatMap(({ event, data }) => (data === null ? [] : [{ event: event ?? '', data }]))
}

/** A frame that is whole, though an LF could still have followed; one that is not is no event. */
function lastOf(splitter: SseSplitter): SseFrame[] {
  const rest = splitter.end()
  return rest !== null && /[\r\n]\r$|^\r$/.test(decoder.decode(rest.bytes)) ? [rest] : []
}

test("SseSplitter finds the standard's events for every line end and every split", () => {
  fc.assert(
    fc.property(anyBytes, fc.array(fc.nat(), { maxLength: 12 }), (bytes, cuts) => {
      expect(eventsOf(splitAt(bytes, cuts))).toEqual(eventsIn(bytes))
    }),
    { numRuns: runs },
  )
})

test('a frame with other data, or reduced to its data, is the same event for every line end', () => {
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      const frames = framesOf([bytes, encoder.encode('\n\n')])
      const named = ({ event, data }: SseFrame, said: string) =>
        data === null ? [] : [{ event: event ?? '', data: said }]
      const other = Buffer.concat(
        frames.map((frame) => (frame.data === null ? frame.bytes : withData(frame, '{"c":1}'))),
      )
      expect(eventsIn(other)).toEqual(frames.flatMap((frame) => named(frame, '{"c":1}')))
      const bare = Buffer.concat(frames.map((frame) => withoutAsides(frame, frame.event)))
      expect(eventsIn(bare)).toEqual(frames.flatMap((frame) => named(frame, frame.data ?? '')))
      for (const [, text = ''] of decoder.decode(bare).matchAll(/^([^\r\n]*)/gm))
        expect(text).toMatch(/^(?:|:|(?:data|event)(?::.*)?)$/s)
    }),
    { numRuns: runs },
  )
})

test('SseSplitter gives the same frames byte by byte', () => {
  const bytes = encoder.encode('\uFEFFdata: é\r\n\r\n: keep\n\ndata: 1\rdata: 2\r\rdata: [DONE]\n\n')
  const single = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
  expect(readable(framesOf(single))).toEqual([
    { text: '\uFEFFdata: é\r\n\r\n', data: 'é' },
    { text: ': keep\n\n', data: null },
    { text: 'data: 1\rdata: 2\r\r', data: '1\n2' },
    { text: 'data: [DONE]\n\n', data: '[DONE]' },
  ])
})

test('SseSplitter gives a frame as soon as its blank line is there', () => {
  const splitter = new SseSplitter(100)
  expect(splitter.push(encoder.encode('data: a\n'))).toEqual([])
  expect(splitter.push(encoder.encode('\n')).map(({ data }) => data)).toEqual(['a'])
})

test('SseSplitter waits after a CR, because an LF may belong to it', () => {
  const splitter = new SseSplitter(100)
  expect(splitter.push(encoder.encode('data: a\r\n\r'))).toEqual([])
  expect(readable(splitter.push(encoder.encode('\n')))).toEqual([{ text: 'data: a\r\n\r\n', data: 'a' }])
})

test('SseSplitter gives back an unfinished frame at the end', () => {
  const splitter = new SseSplitter(100)
  splitter.push(encoder.encode('data: [DONE]'))
  expect(splitter.end()?.data).toBe('[DONE]')
  expect(splitter.end()).toBeNull()
})

test('SseSplitter refuses a frame that is longer than its limit', () => {
  const splitter = new SseSplitter(8)
  splitter.push(encoder.encode('data: a'))
  expect(() => splitter.push(encoder.encode('bc'))).toThrow(RangeError)
  expect(() => new SseSplitter(8).push(encoder.encode('data: abcdef\n\n'))).toThrow(RangeError)
})

test("reads a frame's event name, and keeps its other lines when its data is rewritten", () => {
  const [frame] = framesOf([encoder.encode('event: old\r\nid: 7\r\ndata: a\r\ndata: b\r\nevent:new\r\n\r\n')])
  expect([frame?.event, frame?.data]).toEqual(['new', 'a\nb'])
  expect(decoder.decode(withData(frame ?? { bytes: new Uint8Array() }, '{"c":1}'))).toBe(
    'event: old\r\nid: 7\r\ndata: {"c":1}\r\nevent:new\r\n\r\n',
  )
  expect(framesOf([encoder.encode(': only a comment\n\n')])[0]?.event).toBeNull()
})

test('withData returns a frame with the given data for any form of the frame', () => {
  fc.assert(
    fc.property(lineEnd, fc.string(), (end, text) => {
      const data = text.replaceAll('\r', '')
      const bytes = encoder.encode(`event: x${end}data: old${end}data: older${end}${end}`)
      expect(framesOf([withData({ bytes }, data)]).map((frame) => [frame.event, frame.data])).toEqual([['x', data]])
    }),
  )
})
