/** For tests of inspected streams: a stream written frame by frame, and what leaves of it. */
import { chat } from '../../languages/chat/dialect.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { isEventName } from '../../languages/reading/texts/known-labels.ts'
import { framesOf, start } from '../../languages/testing/streams.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import { termDetector } from '../detectors/terms/term-detector.ts'
import type { InspectionRule, Stop, TextAction } from '../rule.ts'
import { StreamInspector } from '../stream.ts'
import { ruleOf } from './passing.ts'

export const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
export const forbids = (action: TextAction): InspectionRule =>
  ruleOf(termDetector(['blackbird'], 'TERM', plain), action)

interface Passed {
  text: string
  stop: Stop | null
}

export function pass(dialect: Dialect, stream: string, rule: InspectionRule = forbids('block')): Passed {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector(reader, [rule], { isOwnEvent: isEventName })
  const out: Uint8Array[] = []
  for (const frame of framesOf(Buffer.from(stream))) {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    const { bytes, stop } = inspector.take(frame, facts?.terminal ?? false)
    if (bytes !== null) out.push(bytes)
    if (stop !== null) return { text: Buffer.concat(out).toString(), stop }
  }
  const { bytes, stop } = inspector.end()
  if (bytes !== null) out.push(bytes)
  return { text: Buffer.concat(out).toString(), stop }
}

/** What leaves with each frame of a stream that goes on. */
export function passes(dialect: Dialect, stream: string, rule: InspectionRule = forbids('block')): string[] {
  const reader = dialect.reader(start)
  const inspector = new StreamInspector(reader, [rule], { isOwnEvent: isEventName })
  return framesOf(Buffer.from(stream)).map((frame) => {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    return Buffer.from(inspector.take(frame, facts?.terminal ?? false).bytes ?? []).toString()
  })
}

export const data = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
export const delta = (value: unknown, more: object = {}) =>
  data({ id: 'c', choices: [{ index: 0, delta: value, ...more }] })
export const finish = delta({}, { finish_reason: 'stop' })

/** Passes a stream that no rule reads, but whose tools a policy decides on, which cannot where a frame contradicts. */
export function watch(stream: string): string | 'undecided' {
  const reader = chat.reader(start)
  let contradicts = false
  const open = (frame: SseFrame) => {
    const opened = reader.open(frame)
    contradicts ||= opened?.contradicts === true
    return opened
  }
  const watching = { isWatched: true, isOwnEvent: isEventName }
  const inspector = new StreamInspector({ open, delta: (...given) => reader.delta(...given) }, [], watching)
  const out = framesOf(Buffer.from(stream)).map((frame) => {
    const facts = frame.data === null ? null : reader.frame({ event: frame.event, data: frame.data })
    return inspector.take(frame, facts?.terminal ?? false).bytes ?? new Uint8Array(0)
  })
  return contradicts ? 'undecided' : Buffer.concat(out).toString()
}

export const callFrame = (...calls: object[]) => delta({ tool_calls: calls })
export const done = finish + data('[DONE]')

/** The calls of a stream's choices as a client that joins by number makes them, and how many frames name one. */
export function callsOf(text: string) {
  const calls: { name: string; arguments: string; named: number }[] = []
  for (const [, line = ''] of text.matchAll(/^data: (\{.*)$/gm)) {
    for (const {
      delta: { tool_calls: parts = [] },
    } of JSON.parse(line).choices ?? []) {
      for (const { index: number, function: part = {} } of parts) {
        const index = number ?? 0
        calls[index] ??= { name: '', arguments: '', named: 0 }
        const known = calls[index]
        known.name += part.name ?? ''
        known.arguments += part.arguments ?? ''
        if (part.name) known.named++
      }
    }
  }
  return calls
}
