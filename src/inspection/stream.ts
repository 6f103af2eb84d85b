/**
 * Inspects a streamed answer frame by frame, in any dialect (protocols section 9).
 *
 * 1. Each channel (a field of a choice) is one text on its way through the rules. A frame leaves with the part of its
 *    text that is safe; where all of it is, these are the bytes that came.
 * 2. What is held back leaves with the next frame of the channel, or in a frame of ours before the one that ends it.
 * 3. Texts that stand on their own (the whole once more, a citation) are passed whole, by the same rules.
 * 4. Where a rule blocks, the frame keeps what stands before the match, nothing else of it leaves, and the stream stops.
 * 5. While a rule can escalate, frames are kept back until the stream ends or more than `headBytes` came, so that the
 *    answer of a waiting request can still be a whole one; a later escalation ends what has begun.
 *
 * Text on a channel that had ended, from a provider that breaks its own protocol, is one more text; what is held of it
 * when the stream ends has no frame left to go out in. A match that runs across such an end stops the stream, whatever
 * the rule's action: its beginning has gone.
 *
 * While a rule may change what passes, nothing goes out that it has not read: of a frame's lines these are its data, and
 * an event name in which nothing was found. Comments are emptied; `id`, `retry` and unknown fields are left out.
 *
 * The claim is about the decoded text of one field: what is spelled across several fields, or encoded by the model, is
 * not found. In tool arguments the punctuation between strings that a match spans stays.
 *
 * It does not end the stream: who relays it records the outcome first, and writes the dialect's last frames.
 */
import type { FrameText, StreamPiece, TextKind } from '../dialects/dialect.ts'
import { type SseFrame, withoutAsides } from '../lib/sse.ts'
import { Channel, passWhole } from './channel.ts'
import { maxLiveUnits } from './detector.ts'
import type { Finding, InspectionRule, Stop } from './rule.ts'

/** What is used of a dialect's reader. */
export interface ChannelReader<Frame> {
  open(frame: Frame): FrameText | null
  delta(channel: string, text: string): Uint8Array
}

export interface InspectedFrame {
  /** What goes to the caller now; null where nothing does. */
  readonly bytes: Uint8Array | null
  /** Why the stream must end here. */
  readonly stop: Stop | null
}

interface OpenChannel {
  readonly kind: TextKind
  passage: Channel
  /** The dialect said that nothing follows, and what was held has gone out. */
  ended: boolean
  /** The end of all that came; once it has ended, what stood there then. */
  came: string
  /** What came after its end, until no match can reach back across it. */
  after: string
}

/** How much of a text is gathered before all but its end is forgotten. */
const gatheredUnits = 64 * maxLiveUnits
/** How many event names are known to be harmless; a dialect has some fifty. */
const eventsKept = 256

/** How much of an answer's head is kept back for a rule that can escalate. */
const headBytes = 64 * 1024

const nothing: InspectedFrame = { bytes: null, stop: null }

export class StreamInspector<Frame extends Pick<SseFrame, 'bytes'> & Partial<SseFrame>> {
  /** What the rules found; whoever has taken note of it may take it out. */
  readonly findings: Finding[] = []
  readonly #reader: ChannelReader<Frame>
  readonly #rules: readonly InspectionRule[]
  readonly #channels = new Map<string, OpenChannel>()
  /** Whether a rule may change what passes: otherwise the bytes that came go out, all that they hold included. */
  readonly #changes: boolean
  /** Frames kept back for a possible escalation; null when they no longer are. */
  #head: Uint8Array[] | null
  #headLength = 0
  #stop: Stop | null = null
  /** Event names in which nothing was found. */
  readonly #events = new Set<string>()

  constructor(reader: ChannelReader<Frame>, rules: readonly InspectionRule[]) {
    this.#reader = reader
    this.#rules = rules
    this.#changes = rules.some(({ enforced }) => enforced)
    this.#head = rules.some(({ action, enforced }) => enforced && action === 'escalate') ? [] : null
  }

  /** Takes the next frame; `last`: it ends the answer, so everything still held goes out before it. */
  take(frame: Frame, last: boolean): InspectedFrame {
    if (this.#stop !== null) return nothing
    const opened = this.#reader.open(frame)
    const before: Uint8Array[] = []
    let passing = opened === null || this.#passPieces(opened, before)
    if (last && this.#stop === null) {
      this.#flush(before)
      passing = this.#stop === null
    }
    if (this.#stop === null || passing) {
      const bytes = opened === null ? frame.bytes : opened.bytes()
      before.push(this.#changes ? this.#withoutUnread(frame, bytes) : frame.bytes)
    }
    return this.#out(before, last)
  }

  /** The provider's side ended without a last frame. */
  end(): InspectedFrame {
    const rest: Uint8Array[] = []
    if (this.#stop === null) this.#flush(rest)
    return this.#out(rest, true)
  }

  #withoutUnread({ event = null, data = null, asides }: Frame, bytes: Uint8Array): Uint8Array {
    const isHarmless = event === null || this.#isHarmless(event)
    if (isHarmless && asides === undefined) return bytes
    return withoutAsides({ bytes, data }, isHarmless ? event : null)
  }

  #isHarmless(event: string): boolean {
    if (this.#events.has(event)) return true
    const text = { kind: 'content', role: null, place: 'event', text: event } as const
    const passed = passWhole(this.#rules, text, [])
    if (passed.stop !== null || passed.text !== event) return false
    if (this.#events.size < eventsKept) this.#events.add(event)
    return true
  }

  /** Passes a frame's texts; false where a stop leaves it with nothing worth sending. */
  #passPieces(opened: FrameText, before: Uint8Array[]): boolean {
    const last = lastPieces(opened)
    // First what a channel still owes: the same text once more, whole, may stop the stream.
    for (const name of opened.ends) {
      if (last.has(name)) continue
      this.#endChannel(name, before)
      if (this.#stop !== null) return false
    }
    let passed = false
    for (const piece of opened.pieces) {
      const text = this.#stop === null ? this.#passPiece(piece, last.get(piece.channel) === piece) : ''
      if (text !== piece.text) piece.replace(text)
      if (text !== '' && !(piece.whole && this.#stop !== null)) passed = true
    }
    return this.#stop === null || passed
  }

  #passPiece(piece: StreamPiece, ends: boolean): string {
    const place = piece.channel
    const text = { kind: piece.kind, role: null, place, text: piece.text }
    if (piece.whole) {
      const whole = passWhole(this.#rules, text, this.findings)
      this.#stop = whole.stop
      return whole.stop === null ? whole.text : ''
    }
    const channel = this.#channels.get(place) ?? this.#begin(place, piece.kind)
    if (channel.ended) this.#stop = this.#stopAcross(channel, place, piece.text)
    if (this.#stop !== null) return ''
    if (!channel.ended) channel.came = gathered(channel.came, piece.text)
    let out = channel.passage.push(piece.text)
    if (ends && channel.passage.stop === null) out += this.#endPassage(place, channel)
    this.#stop ??= channel.passage.stop
    return out
  }

  #begin(place: string, kind: TextKind): OpenChannel {
    const channel = { passage: this.#passage(place, kind), kind, ended: false, came: '', after: '' }
    this.#channels.set(place, channel)
    return channel
  }

  /** What a match that runs from before a channel's end to behind it comes to; its end is what is new of it. */
  #stopAcross(channel: OpenChannel, place: string, text: string): Stop | null {
    if (channel.after.length > maxLiveUnits) return null
    channel.after += text
    const came = channel.came.slice(-maxLiveUnits)
    const whole = { kind: 'content', role: null, place, text: came + channel.after } as const
    for (const rule of this.#rules) {
      // What puts values back is no policy's: half of a placeholder stays one.
      if (!rule.enforced || rule.policyId === '' || rule.reads?.({ kind: channel.kind, role: null }) === false) continue
      const found: Finding[] = []
      passWhole([rule], whole, found)
      const across = found.find(({ start, end }) => start < came.length && end > came.length)
      if (across === undefined) continue
      this.findings.push(across)
      return { rule, verdict: rule.action === 'escalate' ? 'escalate' : 'block', entry: across.entry }
    }
    return null
  }

  #passage(place: string, kind: TextKind): Channel {
    return new Channel(this.#rules, { kind, role: null, place }, this.findings)
  }

  /** Gives the rest of a channel; what came after it would be another text. */
  #endPassage(place: string, channel: OpenChannel): string {
    const { passage } = channel
    channel.ended = true
    channel.passage = this.#passage(place, channel.kind)
    const rest = passage.end()
    this.#stop = passage.stop
    return rest
  }

  /** Lets out what is held of a channel that has ended, in a frame of ours. */
  #endChannel(name: string, before: Uint8Array[]): void {
    const channel = this.#channels.get(name)
    if (channel === undefined || channel.ended) return
    const rest = this.#endPassage(name, channel)
    if (rest !== '') before.push(this.#reader.delta(name, rest))
  }

  #flush(before: Uint8Array[]): void {
    for (const name of this.#channels.keys()) {
      this.#endChannel(name, before)
      if (this.#stop !== null) return
    }
  }

  #out(frames: readonly Uint8Array[], last: boolean): InspectedFrame {
    if (this.#head === null) return { bytes: joined(frames), stop: this.#stop }
    this.#head.push(...frames)
    for (const { length } of frames) this.#headLength += length
    if (this.#stop?.verdict === 'escalate') return { bytes: null, stop: this.#stop }
    if (!last && this.#stop === null && this.#headLength <= headBytes) return nothing
    const head = joined(this.#head)
    this.#head = null
    return { bytes: head, stop: this.#stop }
  }
}

/** For each channel that ends with the frame and has pieces in it, the last of them: it takes the rest along. */
function lastPieces({ pieces, ends }: FrameText): ReadonlyMap<string, StreamPiece> {
  const last = new Map<string, StreamPiece>()
  if (ends.length === 0) return last
  for (const piece of pieces) if (!piece.whole && ends.includes(piece.channel)) last.set(piece.channel, piece)
  return last
}

const gathered = (came: string, text: string): string =>
  came.length > gatheredUnits ? came.slice(-maxLiveUnits) + text : came + text

function joined(frames: readonly Uint8Array[]): Uint8Array | null {
  const [first] = frames
  if (first === undefined) return null
  return frames.length === 1 ? first : Buffer.concat(frames)
}
