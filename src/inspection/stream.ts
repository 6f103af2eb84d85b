/**
 * Inspects a streamed answer frame by frame, in any dialect (inspection/README.md).
 *
 * 1. Each channel (a field of a choice) is one text on its way through the rules. A frame leaves with the part of its
 *    text that is safe; where all of it is, these are the bytes that came.
 * 2. What is held back leaves with the next frame of the channel, or in a frame of ours before the one that ends it.
 * 3. Texts that stand on their own (the whole once more, a citation) are passed whole, by the same rules.
 * 4. Where a rule blocks, the frame keeps what stands before the match, no more of it leaves, and the stream stops.
 *    If clients act on the frame at once, only its texts before the match leave, in frames of ours.
 * 5. While a rule can escalate, frames are kept back until the stream ends or more than `headBytes` came, so that the
 *    answer of a waiting request can still be a whole one; a later escalation ends what has begun.
 *
 * The first frame that names a tool waits, and all that follow with it, until the name is whole; it says all of it
 * then, and the others nothing of it. Where the stream stops meanwhile, they never leave. More than `headBytes`
 * behind it are not kept: the name is what came of it.
 *
 * Data that is no JSON is not cut, nor moved (`raw-text.ts`): where its end may still become a match, its frame
 * waits, and what follows it, until more such data has come, or a frame that is none.
 *
 * Text behind the end of its channel, from a provider that breaks its own protocol, is one more text, which ends with
 * the stream: that provider's ends are none. A match that runs across such an end, or is one only for what stands
 * before it, stops the stream, whatever the rule's action: its beginning has gone. So do arguments that go on behind
 * their end, which nobody can read without what came before, and a frame that contradicts itself about what it is or
 * whose text it brings, where a policy may stop or change the answer.
 *
 * While a policy may change or stop what passes, nothing goes out that was not read: of a frame's lines these are its
 * data, and an event name that is the language's own, or in which nothing was found. Comments are emptied; `id`,
 * `retry` and unknown fields are left out: some clients read data in a line that the standard says is none. Data that
 * others read otherwise is written anew (`open-frame.ts`), log probabilities are left out. A comment waits for no
 * text and no name, nor does what only keeps a line open for a text: each text keeps its own order, and what ends a
 * text comes after all of it.
 *
 * The claim is about the decoded text of one field: what is spelled across several fields, or encoded by the model, is
 * not found. In tool arguments the punctuation between strings that a match spans stays.
 *
 * It is longer than most because what a frame waits for, what a channel holds and why the stream stops are one state.
 *
 * It does not end the stream: who relays it records the outcome first, and writes the dialect's last frames.
 */
import type { FrameText, StreamPiece } from '../languages/dialect.ts'
import type { TextKind } from '../languages/reading/texts/text-slot.ts'
import { type SseFrame, withoutAsides } from '../lib/http/sse.ts'
import { Channel, followWhole, mayFind, type PassedWhole, passWhole } from './channel.ts'
import { maxLiveUnits } from './detectors/detector.ts'
import { RawText } from './raw-text.ts'
import type { Finding, InspectionRule, Stop } from './rule.ts'

/** What is used of a dialect's reader. */
export interface ChannelReader<Frame> {
  open(frame: Frame): FrameText | null
  delta(channel: string, text: string): Uint8Array
}

interface Watching {
  /** Others than the rules may stop the answer, and hold it until its end. */
  readonly isWatched?: boolean
  /** Whether an event's name is made of the language's own words, and so no text. */
  readonly isOwnEvent?: (name: string) => boolean
}

interface InspectedFrame {
  /** What goes to the caller now; null where nothing does. */
  readonly bytes: Uint8Array | null
  /** Why the stream must end here. */
  readonly stop: Stop | null
}

interface OpenChannel {
  readonly kind: TextKind
  /** Null until something of it comes, and again once it has ended: a stream may have thousands. */
  passage: Channel | null
  /** The dialect said that nothing follows, and what was held has gone out. */
  ended: boolean
  /** The end of all that came; once it has ended, what stood there then. */
  came: string
  /** What came after its end, until no match can reach back across it. */
  after: string
  /** What each rule makes of what came before its end, where it was asked. */
  readonly before: PassedWhole[]
  /** A name that is not whole yet: the piece that is to say all of it, and what of it has passed. */
  name: { readonly piece: StreamPiece; text: string } | null
}

type InspectableFrame = Pick<SseFrame, 'bytes'> & Partial<SseFrame>

/** A frame on its way. */
interface Passing {
  /** Frames of ours that go out before it. */
  readonly before: Uint8Array[]
  /** Null where it does not leave. */
  sent: { readonly frame: InspectableFrame; readonly opened: FrameText | null } | null
}

/** Length at which all but the end of a text is forgotten: its pieces keep alive the frames that they are parts of. */
const gatheredUnits = maxLiveUnits + 256
/** How many event names are known to be harmless; a dialect has some fifty. */
const eventsKept = 256

/** How much of an answer's head is kept back for a rule that can escalate. */
const headBytes = 64 * 1024

const nothing: InspectedFrame = { bytes: null, stop: null }

export class StreamInspector<Frame extends InspectableFrame> {
  /** What the rules found; whoever has taken note of it may take it out. */
  readonly findings: Finding[] = []
  readonly #reader: ChannelReader<Frame>
  readonly #isOwnEvent: (name: string) => boolean
  readonly #rules: readonly InspectionRule[]
  readonly #channels = new Map<string, OpenChannel>()
  /**
   * Whether the answer may be changed or stopped: names go out whole then, and nothing that was not read.
   * Otherwise the bytes that came go out, all that they hold included.
   */
  readonly #gathers: boolean
  /** Frames kept back for a possible escalation; null when they no longer are. */
  #head: Uint8Array[] | null
  #headLength = 0
  #stop: Stop | null = null
  /** Frames that wait, and what for: names that are not whole, and data that is no JSON. */
  #waiting: Passing[] = []
  /** Of those behind the first. */
  #waitingLength = 0
  readonly #unnamed = new Set<string>()
  #raw: RawText | null = null
  /** The last whole text in which nothing can be found: a provider may say one in every frame. */
  #harmless: Pick<StreamPiece, 'kind' | 'text'> | null = null
  /** Event names in which nothing was found. */
  readonly #events = new Set<string>()

  constructor(
    reader: ChannelReader<Frame>,
    rules: readonly InspectionRule[],
    { isWatched = false, isOwnEvent = () => false }: Watching = {},
  ) {
    this.#reader = reader
    this.#isOwnEvent = isOwnEvent
    this.#rules = rules
    this.#gathers = isWatched || rules.some(({ enforced }) => enforced)
    this.#head = rules.some(({ action, enforced }) => enforced && action === 'escalate') ? [] : null
  }

  /** Takes the next frame; `last`: it ends the answer, so everything still held goes out before it. */
  take(frame: Frame, last: boolean): InspectedFrame {
    if (this.#stop !== null) return nothing
    const opened = this.#reader.open(frame)
    const passing: Passing = { before: [], sent: { frame, opened } }
    // A comment says nothing that could come too early, and keeps the line open meanwhile.
    if (frame.data === null && this.#waits()) return this.#out(this.#framesOf(passing), last)
    if (this.#raw !== null && opened !== null && !goesOnWith(this.#raw, opened)) this.#endRaw(this.#raw, passing.before)
    let leaves = this.#stop === null && (opened === null || this.#passPieces(opened, passing))
    if (last && this.#stop === null) {
      this.#flush(passing.before)
      leaves = this.#stop === null
    }
    if (!leaves) passing.sent = null
    if (this.#waiting.length > 0) this.#waitingLength += frame.bytes.length
    return this.#out(this.#leaving(passing), last)
  }

  /** The provider's side ended without a last frame. */
  end(): InspectedFrame {
    if (this.#stop !== null) return this.#out([], true)
    const passing: Passing = { before: [], sent: null }
    this.#flush(passing.before)
    return this.#out(this.#leaving(passing), true)
  }

  /** The bytes of all that may leave now, with a frame that just came. */
  #leaving(passing: Passing): readonly Uint8Array[] {
    if (this.#waiting.length === 0 && !this.#waits()) {
      this.#waitingLength = 0
      return this.#framesOf(passing)
    }
    this.#waiting.push(passing)
    if (this.#waits() && this.#stop === null) {
      if (this.#waitingLength <= headBytes) return this.#freed()
      this.#flushWaiting(passing.before)
    }
    const leaving = this.#waits() ? [] : this.#waiting
    this.#waiting = []
    this.#waitingLength = 0
    return leaving.flatMap((each) => this.#framesOf(each))
  }

  /** What stands before the first frame that goes on waiting. */
  #freed(): readonly Uint8Array[] {
    const first = this.#raw?.first
    if (this.#unnamed.size > 0 || !first) return []
    const freed = this.#waiting.splice(
      0,
      this.#waiting.findIndex(({ sent }) => sent?.opened?.pieces[0] === first),
    )
    const behind = this.#waiting.slice(1)
    if (freed.length > 0)
      this.#waitingLength = behind.reduce((sum, { sent }) => sum + (sent?.frame.bytes.length ?? 0), 0)
    return freed.flatMap((each) => this.#framesOf(each))
  }

  #framesOf(passing: Passing): readonly Uint8Array[] {
    const { before, sent } = passing
    if (sent !== null) before.push(this.#bytesOf(sent))
    return before
  }

  #waits(): boolean {
    return this.#gathers && (this.#unnamed.size > 0 || (this.#raw !== null && this.#raw.first !== null))
  }

  #bytesOf({ frame, opened }: NonNullable<Passing['sent']>): Uint8Array {
    // Whoever notes what leaves learns it from this call, also where it is not this that leaves.
    const bytes = opened === null ? frame.bytes : opened.bytes()
    return this.#gathers ? this.#withoutUnread(frame, bytes) : frame.bytes
  }

  #withoutUnread({ event = null, data = null, asides, marked }: InspectableFrame, bytes: Uint8Array): Uint8Array {
    const isHarmless = event === null || this.#isHarmless(event)
    if (isHarmless && asides === undefined) return bytes
    return withoutAsides({ bytes, data, ...(marked && { marked }) }, isHarmless ? event : null)
  }

  #isHarmless(event: string): boolean {
    if (this.#events.has(event)) return true
    const text = { kind: 'content', role: null, place: 'event', text: event } as const
    if (!this.#isOwnEvent(event)) {
      const passed = passWhole(this.#rules, text, [])
      if (passed.stop !== null || passed.text !== event) return false
    }
    if (this.#events.size < eventsKept) this.#events.add(event)
    return true
  }

  /** Passes a frame's texts; false where a stop leaves it with nothing worth sending. */
  #passPieces(opened: FrameText, passing: Passing): boolean {
    if (opened.contradicts === true) this.#stop = this.#stopUnclear()
    const last = lastPieces(opened)
    // First what a channel still owes: the same text once more, whole, may stop the stream.
    for (const name of opened.ends) {
      if (this.#stop !== null) return false
      if (!last.has(name)) this.#endChannel(name, passing.before)
    }
    let passed = false
    const texts: [channel: string, text: string][] | null = opened.actsAtOnce === true ? [] : null
    for (const piece of opened.pieces) {
      if (piece.raw !== undefined && this.#stop === null) {
        if (this.#passRaw(piece, opened)) passed = true
        continue
      }
      const text = this.#stop === null ? this.#passPiece(piece, last.get(piece.channel) === piece) : ''
      if (text !== piece.text) piece.replace(text)
      if (text === '' || (piece.whole && this.#stop !== null)) continue
      passed = true
      if (!piece.whole) texts?.push([piece.channel, text])
    }
    if (this.#stop === null) return true
    if (texts === null) return passed
    for (const [channel, text] of texts) this.#giveRest(channel, text, passing.before)
    return false
  }

  /** A rule to stop for where nobody knows which text clients would make of a frame. */
  #stopUnclear(): Stop | null {
    const rule = this.#rules.find(({ enforced, policyId }) => enforced && policyId !== '')
    return rule === undefined ? null : unclear(rule)
  }

  #passPiece(piece: StreamPiece, ends: boolean): string {
    if (piece.whole) return this.#passWholePiece(piece)
    const place = piece.channel
    const channel = this.#channels.get(place) ?? this.#begin(place, piece.kind)
    if (channel.ended) this.#stop = this.#stopAcross(channel, place, piece.text)
    if (this.#stop !== null) return ''
    if (!channel.ended) channel.came = gathered(channel.came, piece.text)
    channel.passage ??= new Channel(this.#rules, { kind: channel.kind, role: null, place }, this.findings)
    const { passage } = channel
    let out = passage.push(piece.text)
    if (ends && !channel.ended && passage.stop === null) out += this.#endPassage(channel)
    this.#stop ??= passage.stop
    if (piece.kind !== 'name') return out
    if (channel.name === null && ends && this.#stop === null) return out
    return this.#passName(piece, channel, out, ends)
  }

  #passRaw(piece: StreamPiece, { ends }: FrameText): boolean {
    this.#raw ??= new RawText(piece.channel, this.#rules, this.findings)
    const passed = this.#raw.push(piece, ends.includes(piece.channel))
    this.#stop = this.#raw.stop
    return passed
  }

  #endRaw(raw: RawText, before: Uint8Array[]): void {
    this.#giveRest(raw.channel, raw.end(), before)
    this.#stop = raw.stop
  }

  #passWholePiece({ channel, kind, text }: StreamPiece): string {
    if (text === this.#harmless?.text && kind === this.#harmless.kind) return text
    const whole = { kind, role: null, place: channel, text } as const
    if (!this.#rules.some((rule) => mayFind(rule, whole))) {
      this.#harmless = { kind, text }
      return text
    }
    const passed = followWhole(this.#rules, whole, this.findings)
    this.#stop = passed.stop
    return passed.stop === null ? passed.text : ''
  }

  /** What a frame says of a name for now: the first that has some of it will say it whole. */
  #passName(piece: StreamPiece, channel: OpenChannel, out: string, ends: boolean): string {
    const { name } = channel
    this.#unnamed.add(piece.channel)
    if (name === null) {
      channel.name = { piece, text: out }
      return piece.text
    }
    name.text += out
    if (ends) this.#nameWhole(piece.channel, channel, '')
    return ''
  }

  #nameWhole(place: string, channel: OpenChannel, rest: string): void {
    const { name } = channel
    // Frames with a part of a name that stops the stream go on waiting, and so never leave.
    if (name === null || this.#stop !== null) return
    const whole = name.text + rest
    name.piece.replace(whole)
    channel.name = null
    this.#unnamed.delete(place)
  }

  #begin(place: string, kind: TextKind): OpenChannel {
    const channel: OpenChannel = {
      passage: null,
      kind,
      ended: false,
      came: '',
      after: '',
      before: [],
      name: null,
    }
    this.#channels.set(place, channel)
    return channel
  }

  /**
   * What text behind its channel's end comes to together with what stands before that end: where the two say another
   * thing to a rule than each by itself, it stops.
   */
  #stopAcross(channel: OpenChannel, place: string, text: string): Stop | null {
    const { kind } = channel
    if (channel.after.length > maxLiveUnits) return null
    channel.after += text
    let [came, after] = [channel.came.slice(-maxLiveUnits), channel.after]
    for (const [index, rule] of this.#rules.entries()) {
      // What puts values back is no policy's: half of a placeholder stays one.
      if (rule.policyId === '' || rule.reads?.({ kind, role: null, place: '' }) === false) continue
      if (kind === 'tool_arguments' && rule.enforced) return unclear(rule)
      const found: Finding[] = []
      const passed = (said: string, findings: Finding[]) =>
        passWhole([rule], { kind, role: null, place, text: said }, findings)
      channel.before[index] ??= passed(came, [])
      const [one, other, both] = [channel.before[index], passed(after, []), passed(came + after, found)]
      const across = found.find(({ start, end }) => start < came.length && end > came.length)
      if (across !== undefined) this.findings.push(across)
      const isSame = both.text === one.text + other.text && (both.stop === null) === (other.stop === null)
      if (!isSame || (across !== undefined && rule.enforced)) {
        const verdict = rule.action === 'escalate' ? 'escalate' : 'block'
        return { rule, verdict, entry: across?.entry ?? unclear(rule).entry }
      }
      came = one.text
      after = other.text
    }
    return null
  }

  /** Gives the rest of a channel; what came after it would be another text. */
  #endPassage(channel: OpenChannel): string {
    const { passage } = channel
    channel.ended = true
    channel.passage = null
    const rest = passage?.end() ?? ''
    this.#stop = passage?.stop ?? null
    return rest
  }

  /** Lets out what is held of a channel that has ended: with the frame it waits for, or in a frame of ours. */
  #endChannel(name: string, before: Uint8Array[]): void {
    const channel = this.#channels.get(name)
    if (channel === undefined || channel.ended) return
    const rest = this.#endPassage(channel)
    if (channel.kind === 'name') this.#nameWhole(name, channel, rest)
    else this.#giveRest(name, rest, before)
  }

  #giveRest(name: string, rest: string, before: Uint8Array[]): void {
    if (rest !== '') before.push(this.#reader.delta(name, rest))
  }

  #flush(before: Uint8Array[]): void {
    if (this.#raw !== null) this.#endRaw(this.#raw, before)
    if (this.#stop !== null) return
    for (const [name, channel] of this.#channels) {
      if (!channel.ended) this.#endChannel(name, before)
      else if (channel.after !== '') this.#giveRest(name, this.#endPassage(channel), before)
      channel.after = ''
      if (this.#stop !== null) return
    }
  }

  /** More waits than is kept: names, and data that is no JSON, are what came of them. */
  #flushWaiting(before: Uint8Array[]): void {
    if (this.#raw !== null) this.#endRaw(this.#raw, before)
    for (const name of [...this.#unnamed]) {
      if (this.#stop !== null) return
      this.#endChannel(name, before)
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

const goesOnWith = (raw: RawText, { pieces: [piece] }: FrameText): boolean =>
  piece !== undefined && raw.goesOnWith(piece)

const noPieces: ReadonlyMap<string, StreamPiece> = new Map()

/** For each channel that ends with the frame and has pieces in it, the last of them: it takes the rest along. */
function lastPieces({ pieces, ends }: FrameText): ReadonlyMap<string, StreamPiece> {
  if (ends.length === 0) return noPieces
  const last = new Map<string, StreamPiece>()
  const ending = new Set(ends)
  for (const piece of pieces) if (!piece.whole && ending.has(piece.channel)) last.set(piece.channel, piece)
  return last
}

const unclear = (rule: InspectionRule): Stop => ({ rule, verdict: 'block', entry: 'contradiction' })

const gathered = (came: string, text: string): string =>
  came.length > gatheredUnits ? came.slice(-maxLiveUnits) + text : came + text

function joined(frames: readonly Uint8Array[]): Uint8Array | null {
  const [first] = frames
  if (first === undefined) return null
  return frames.length === 1 ? first : Buffer.concat(frames)
}
