/** Streams for the tests of the text dialects: recorded ones, and what a client makes of any. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type SseFrame, SseSplitter } from '../../lib/http/sse.ts'
import type { Dialect, FrameFacts, StreamReader, StreamStart } from '../dialect.ts'
import { isObject, parseObject } from '../reading/json-value.ts'

export const start: StreamStart = {
  model: 'asked-for',
  exchangeId: '0190a0c0-0000-7000-8000-000000000001',
  usageAdded: false,
}

const data = join(import.meta.dir, '../../../test/fakes/recordings')

export interface Recording {
  name: string
  bytes: Buffer
}

/** The recorded streams of a provider as SSE. */
export function recordings(provider: 'openai-chat' | 'openai-responses' | 'anthropic-messages'): Recording[] {
  const folder = join(data, provider)
  return readdirSync(folder)
    .filter((name) => name.endsWith('.chunks.txt'))
    .flatMap((name) =>
      answersIn(readFileSync(join(folder, name), 'utf8')).map((lines, turn) => ({
        name: turn === 0 ? name : `${name}, turn ${turn + 1}`,
        bytes: recordedStream(provider, lines),
      })),
    )
}

/** One recording may hold several answers, one after another. */
function answersIn(text: string): string[][] {
  const answers: string[][] = []
  let lines: string[] = []
  for (const line of text.trim().split('\n')) {
    if (line.startsWith('{"type":"response.created"') && lines.length > 0) {
      answers.push(lines)
      lines = []
    }
    lines.push(line)
  }
  return [...answers, lines]
}

function recordedStream(provider: string, recorded: readonly string[]): Buffer {
  const lines = [...recorded]
  if (provider === 'openai-chat') lines.push('[DONE]')
  const frames = lines.map((line) => {
    const type = parseObject(line)?.type
    return `${typeof type === 'string' && provider !== 'openai-chat' ? `event: ${type}\n` : ''}data: ${line}\n\n`
  })
  return Buffer.from(frames.join(''))
}

export function framesOf(bytes: Uint8Array, cuts: readonly number[] = []): SseFrame[] {
  const splitter = new SseSplitter(1 << 24)
  const frames: SseFrame[] = []
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    frames.push(...splitter.push(bytes.subarray(from, cut)))
    from = cut
  }
  const rest = splitter.end()
  return rest === null ? frames : [...frames, rest]
}

/** What each frame means, up to the end of the answer. */
export function factsOf(dialect: Dialect, frames: readonly SseFrame[], begin = start): FrameFacts[] {
  const reader = dialect.reader(begin)
  const facts: FrameFacts[] = []
  for (const { event, data: text } of frames) {
    if (text === null) continue
    const noticed = { ...reader.frame({ event, data: text }) }
    facts.push(noticed)
    if (noticed.terminal) break
  }
  return facts
}

/** What a client has in the end: each channel's text as its pieces spell it, and every text that stands on its own. */
export interface Received {
  channels: Record<string, string>
  wholes: string[]
  kinds: Record<string, string>
}

export function receivedFrom(dialect: Dialect, frames: readonly SseFrame[]): Received {
  const reader = dialect.reader(start)
  const received: Received = { channels: {}, wholes: [], kinds: {} }
  for (const frame of frames) {
    const opened = openNext(reader, frame)
    for (const { channel, kind, text, whole } of opened?.pieces ?? []) {
      if (whole) received.wholes.push(`${channel}=${text}`)
      else {
        received.channels[channel] = (received.channels[channel] ?? '') + text
        received.kinds[channel] = kind
      }
    }
  }
  return received
}

export function openNext(reader: StreamReader, frame: SseFrame) {
  if (frame.data === null) return null
  reader.frame({ event: frame.event, data: frame.data })
  return reader.open(frame)
}

/**
 * Passes a stream through an inspection that changes nothing but holds back, of every piece, as much as `hold` says,
 * until its channel goes on or ends.
 */
export function heldBack(dialect: Dialect, frames: readonly SseFrame[], hold: () => number): SseFrame[] {
  const reader = dialect.reader(start)
  const held = new Map<string, string>()
  const out: Uint8Array[] = []
  for (const frame of frames) {
    const opened = openNext(reader, frame)
    if (opened === null) {
      out.push(frame.bytes)
      continue
    }
    for (const piece of opened.pieces) {
      // Names are never let out in parts, and what is no JSON, in some recordings the last frame, has no end.
      if (piece.whole || piece.kind === 'name' || piece.channel === 'unforeseen') continue
      const text = (held.get(piece.channel) ?? '') + piece.text
      const kept = opened.ends.includes(piece.channel) ? 0 : Math.min(hold(), text.length)
      piece.replace(text.slice(0, text.length - kept))
      held.set(piece.channel, text.slice(text.length - kept))
    }
    for (const channel of opened.ends) {
      const rest = held.get(channel) ?? ''
      if (rest !== '') out.push(reader.delta(channel, rest))
      held.delete(channel)
    }
    out.push(opened.bytes())
  }
  return framesOf(Buffer.concat(out))
}

/** The parsed data of every frame that has some. */
export const dataOf = (frames: readonly SseFrame[]): Record<string, unknown>[] =>
  frames.map((frame) => (frame.data === null ? null : parseObject(frame.data))).filter(isObject)
