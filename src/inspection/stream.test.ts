import { expect, test } from 'bun:test'
import type { FrameText, StreamPiece } from '../languages/dialect.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import type { InspectionRule } from './rule.ts'
import { type ChannelReader, StreamInspector } from './stream.ts'
import { ruleOf } from './testing/passing.ts'

interface Frame {
  bytes: Uint8Array
}

interface Piece {
  channel: string
  text: string
  whole?: true
  kind?: StreamPiece['kind']
}

/** A frame of a language of the test's own: its pieces and the channels it ends, as JSON. */
const frame = (pieces: readonly Piece[], ends: readonly string[] = []): Frame => ({
  bytes: Buffer.from(JSON.stringify({ pieces, ends })),
})

const reader: ChannelReader<Frame> = {
  open({ bytes }): FrameText | null {
    const read: { pieces: Piece[]; ends: string[] } = JSON.parse(Buffer.from(bytes).toString())
    let changed = false
    const pieces = read.pieces.map((piece) => ({
      channel: piece.channel,
      kind: piece.kind ?? 'content',
      text: piece.text,
      whole: piece.whole ?? false,
      replace: (text: string) => {
        piece.text = text
        changed = true
      },
    }))
    return { pieces, ends: read.ends, bytes: () => (changed ? Buffer.from(JSON.stringify(read)) : bytes) }
  },
  delta: (channel, text) => Buffer.from(`<${channel}:${text}>`),
}

const words = (action: InspectionRule['action'], ...terms: string[]) =>
  ruleOf(termDetector(terms, '#', { caseSensitive: false, homoglyphs: false, wordBoundaries: false }), action)

const inspector = (...rules: InspectionRule[]) => new StreamInspector(reader, rules)
const texts = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString())
const bytesOf = (pieces: readonly Piece[], ends: readonly string[] = []) =>
  Buffer.from(frame(pieces, ends).bytes).toString()

test('passes a frame that can hold no part of a match at once, byte for byte', () => {
  const stream = inspector(words('redact', 'secret'))
  const came = frame([{ channel: 'a', text: 'hello there' }])
  expect(stream.take(came, false).bytes).toBe(came.bytes)
})

test('holds only the tail that may become a match and sends it with the next frame of its channel', () => {
  const stream = inspector(words('redact', 'secret'))
  expect(texts(stream.take(frame([{ channel: 'a', text: 'my sec' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'a', text: 'my ' }]),
  )
  expect(texts(stream.take(frame([{ channel: 'b', text: 'ret' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'b', text: 'ret' }]),
  )
  expect(texts(stream.take(frame([{ channel: 'a', text: 'ond' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'a', text: 'second' }]),
  )
})

test('sends held text before the frame that ends its channel, or in its last piece', () => {
  const stream = inspector(words('redact', 'secret'))
  stream.take(frame([{ channel: 'a', text: 'my sec' }]), false)
  stream.take(frame([{ channel: 'b', text: 'his secr' }]), false)
  expect(texts(stream.take(frame([], ['a']), false).bytes)).toBe(`<a:sec>${bytesOf([], ['a'])}`)
  expect(texts(stream.take(frame([{ channel: 'b', text: 'e' }], ['b']), false).bytes)).toBe(
    bytesOf([{ channel: 'b', text: 'secre' }], ['b']),
  )
})

test('sends held text before the last frame of the stream, or at its end', () => {
  const stream = inspector(words('redact', 'secret'))
  stream.take(frame([{ channel: 'a', text: 'my sec' }]), false)
  expect(texts(stream.take(frame([]), true).bytes)).toBe(`<a:sec>${bytesOf([])}`)
  const broken = inspector(words('redact', 'secret'))
  broken.take(frame([{ channel: 'a', text: 'my sec' }]), false)
  expect(texts(broken.end().bytes)).toBe('<a:sec>')
})

test('keeps the text before a blocked match in its frame and sends nothing of other channels after it', () => {
  const stream = inspector(words('block', 'secret'))
  stream.take(frame([{ channel: 'a', text: 'my sec' }]), false)
  const last = stream.take(
    frame([
      { channel: 'b', text: 'before ' },
      { channel: 'a', text: 'ret!' },
      { channel: 'c', text: 'behind' },
    ]),
    false,
  )
  expect(texts(last.bytes)).toBe(
    bytesOf([
      { channel: 'b', text: 'before ' },
      { channel: 'a', text: '' },
      { channel: 'c', text: '' },
    ]),
  )
  expect(last.stop?.verdict).toBe('block')
  expect(stream.take(frame([{ channel: 'c', text: 'more' }]), true)).toEqual({ bytes: null, stop: null })
})

test('drops a frame with nothing before a blocked match', () => {
  const stream = inspector(words('block', 'secret'))
  stream.take(frame([{ channel: 'a', text: 'sec' }]), false)
  expect(stream.take(frame([{ channel: 'a', text: 'ret' }], ['a']), true).bytes).toBeNull()
})

test('sends nothing of the last frame when a block happens at the end of a channel', () => {
  const stream = inspector(words('block', 'cafe'))
  expect(texts(stream.take(frame([{ channel: 'a', text: 'my cafe' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'a', text: 'my ' }]),
  )
  const ended = stream.take(frame([], ['a']), false)
  expect(ended.bytes).toBeNull()
  expect(ended.stop?.verdict).toBe('block')
})

test('rewrites a repeated whole text like its pieces, and tool arguments as JSON', () => {
  const stream = inspector(words('redact', 'secret'))
  const whole = frame([
    { channel: 'a', text: 'my secret', whole: true },
    { channel: 'b', text: '{"x":"s\\u0065cret"}', whole: true, kind: 'tool_arguments' },
  ])
  expect(texts(stream.take(whole, false).bytes)).toBe(
    bytesOf([
      { channel: 'a', text: 'my [#]', whole: true },
      { channel: 'b', text: '{"x":"[#]"}', whole: true, kind: 'tool_arguments' },
    ]),
  )
})

test('inspects text on an ended channel across its frames', () => {
  const stream = inspector(words('redact', 'secret'))
  stream.take(frame([{ channel: 'a', text: 'x' }], ['a']), false)
  expect(texts(stream.take(frame([{ channel: 'a', text: 'a sec' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'a', text: 'a ' }]),
  )
  expect(texts(stream.take(frame([{ channel: 'a', text: 'ret ' }]), false).bytes)).toBe(
    bytesOf([{ channel: 'a', text: '[#] ' }]),
  )
})

test('holds the head while a rule can escalate, and ends a begun answer on a late escalation', () => {
  const early = inspector(words('escalate', 'secret'))
  expect(early.take(frame([{ channel: 'a', text: 'my ' }]), false).bytes).toBeNull()
  expect(early.take(frame([{ channel: 'a', text: 'secret' }]), true)).toMatchObject({
    bytes: null,
    stop: { verdict: 'escalate' },
  })
  const late = inspector(words('escalate', 'secret'))
  const head = late.take(frame([{ channel: 'a', text: 'x'.repeat(70_000) }]), false)
  expect(head.bytes?.length).toBeGreaterThan(70_000)
  const end = late.take(frame([{ channel: 'a', text: 'a secret.' }]), false)
  expect(texts(end.bytes)).toBe(bytesOf([{ channel: 'a', text: 'a ' }]))
  expect(end.stop?.verdict).toBe('escalate')
})

test('finds and changes nothing for a monitor-only rule', () => {
  const stream = inspector({ ...words('block', 'secret'), enforced: false })
  const came = frame([{ channel: 'a', text: 'a secret!' }])
  expect(stream.take(came, false).bytes).toBe(came.bytes)
  expect(stream.findings).toMatchObject([{ label: '#', entry: 'terms[0]', start: 2, end: 8, place: 'a' }])
})

test('holds back the last frame when the block is known there', () => {
  const stream = inspector(words('block', 'cafe'))
  stream.take(frame([{ channel: 'a', text: 'my cafe' }]), false)
  expect(stream.take(frame([]), true)).toMatchObject({ bytes: null, stop: { verdict: 'block' } })
})
