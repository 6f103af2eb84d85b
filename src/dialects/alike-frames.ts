/**
 * Frames that say, but for one text, what the frame before them said: most of a stream. What such a frame means and which
 * texts it has are known from the frame before, so that it need not be parsed, nor its texts be looked for.
 *
 * Two frames are alike where their data is the same before a text and after it, and what stands between is, in each of
 * them, the inside of one JSON string. So both parse to the same tree but for that string. `obfuscation`, padding that
 * is another in each frame, may differ where it says nothing (`vocabulary.ts`): letters and digits.
 *
 * Only compact JSON is learned, and choices that take turns are not.
 */
import type { SseFrame } from '../lib/sse.ts'
import type { FrameText, SseFrameText, StreamPiece, TextKind } from './dialect.ts'
import { textOf } from './json-value.ts'
import type { OpenFrame } from './open-frame.ts'

/** What stays the same. */
interface Form {
  readonly event: string | null
  readonly before: string
  readonly after: string
  /** What stands behind the padding, with whose beginning `after` ends; null where there is none. */
  readonly behind: string | null
}

/** Opens a frame as if it stood alone, which changes nothing for others. */
type OpenAlone = (frame: SseFrame) => FrameText | null

/** What opening the frame that was learned came to; nothing of that frame itself is kept. */
interface Opening {
  readonly pieces: readonly Omit<StreamPiece, 'replace'>[]
  readonly openAlone: OpenAlone
}

export class AlikeFrames {
  #form: Form | null = null
  #opening: Opening | null = null

  /** A frame is another: what it says may change what is known. */
  forget(): void {
    this.#form = null
    this.#opening = null
  }

  /** Learns a frame in which the string member `member` says `text`; all else of its meaning follows from the rest. */
  learn({ event, data }: SseFrameText, member: string, text: string): void {
    this.forget()
    if (text === '' || data.includes('\\')) return
    // Without escapes a name stands as it is, and one that stands once is the member's.
    const name = `"${member}"`
    const at = data.indexOf(name)
    if (data.indexOf(name, at + 1) >= 0 || !data.startsWith(`:"${text}"`, at + name.length)) return
    const start = at + name.length + 2
    const rest = data.slice(start + text.length)
    const padding = rest.indexOf(paddingStart)
    const paddingEnd = padding < 0 ? 0 : padding + paddingStart.length
    const after = padding < 0 ? rest : rest.slice(0, paddingEnd)
    const behind = padding < 0 ? null : rest.slice(rest.indexOf('"', paddingEnd))
    // Padding that says something is a text of this frame alone.
    if (behind !== null && !isPadding(rest, paddingEnd, behind)) return
    this.#form = { event, before: data.slice(0, start), after, behind }
  }

  /** Learns how the frame was opened, where it has one text that goes on, whole ones beside it, and does nothing else. */
  learnOpening(opened: OpenFrame, openAlone: OpenAlone): void {
    if (this.#form === null || opened.pieces.filter(({ whole }) => !whole).length !== 1 || !opened.isPlain()) return
    const pieces = opened.pieces.map(({ channel, kind, text, whole }) => ({ channel, kind, text, whole }))
    this.#opening = { pieces, openAlone }
  }

  /** The text of a frame that is as the one that was learned; null where it is another, or where none was. */
  textOf({ event, data }: SseFrameText): string | null {
    if (this.#form === null || event !== this.#form.event || !data.startsWith(this.#form.before)) return null
    const { before, after, behind } = this.#form
    const end = behind === null ? data.length - after.length : data.indexOf('"', before.length)
    if (end <= before.length || !data.startsWith(after, end)) return null
    if (behind !== null && !isPadding(data, end + after.length, behind)) return null
    const text = data.slice(before.length, end)
    return isVerbatim(text) ? text : unescaped(text)
  }

  /** Opens a frame whose text `textOf` gave; null where none like it has been opened. */
  open(frame: SseFrame, text: string): FrameText | null {
    return this.#opening === null ? null : new AlikeFrame(frame, text, this.#opening)
  }
}

const paddingStart = '"obfuscation":"'

/** Whether nothing but padding stands between an offset and the data's end. */
function isPadding(data: string, from: number, behind: string): boolean {
  const end = data.length - behind.length
  return from <= end && data.endsWith(behind) && /^[A-Za-z0-9]*$/.test(data.slice(from, end))
}

/** Whether a text stands in JSON as it is. */
function isVerbatim(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < space || unit === quote || unit === backslash) return false
  }
  return true
}

/** What the inside of a JSON string says; null where it is none. */
function unescaped(inside: string): string | null {
  try {
    return textOf(JSON.parse(`"${inside}"`))
  } catch {
    // A quote ends the string before: the frame is another.
    return null
  }
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c

class AlikePiece implements StreamPiece {
  readonly channel: string
  readonly kind: TextKind
  readonly text: string
  readonly whole: boolean
  sent: string

  constructor({ channel, kind, text, whole }: Opening['pieces'][number], varying: string) {
    this.channel = channel
    this.kind = kind
    this.text = whole ? text : varying
    this.whole = whole
    this.sent = this.text
  }

  replace(text: string): void {
    this.sent = text
  }
}

const noEnds: readonly string[] = []

class AlikeFrame implements FrameText {
  readonly pieces: AlikePiece[] = []
  readonly ends = noEnds
  readonly #frame: SseFrame
  readonly #openAlone: OpenAlone

  constructor(frame: SseFrame, text: string, { pieces, openAlone }: Opening) {
    this.#frame = frame
    this.#openAlone = openAlone
    for (const piece of pieces) this.pieces.push(new AlikePiece(piece, text))
  }

  bytes(): Uint8Array {
    return this.pieces.some(({ sent, text }) => sent !== text) ? this.#rewritten() : this.#frame.bytes
  }

  #rewritten(): Uint8Array {
    const opened = this.#openAlone(this.#frame)
    if (opened?.pieces.length !== this.pieces.length) throw new RangeError('A frame is not what it seemed to be')
    for (const [index, { sent }] of this.pieces.entries()) opened.pieces[index]?.replace(sent)
    return opened.bytes()
  }
}
