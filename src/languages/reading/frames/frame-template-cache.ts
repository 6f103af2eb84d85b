/**
 * Frames that say, but for one text, what the frame before them said: most of a stream. What such a frame means and which
 * texts it has are known from the frame before, so that it need not be parsed, nor its texts be looked for.
 *
 * Two frames are alike where their data is the same before a text and after it, and what stands between is, in each of
 * them, the inside of one JSON string. So both parse to the same tree but for that string. `obfuscation`, padding that
 * is another in each frame, may differ where it says nothing (`languages/reading/texts/known-labels.ts`).
 *
 * Only compact JSON is learned, and choices that take turns are not.
 */
import type { SseFrame } from '../../../lib/http/sse.ts'
import type { FrameText, SseFrameText, StreamPiece, StreamReader } from '../../dialect.ts'
import { textOf } from '../json-value.ts'
import { paddingMember, saysNothingAsPadding } from '../texts/known-labels.ts'
import type { TextKind } from '../texts/text-slot.ts'
import type { OpenFrame } from './open-frame.ts'

/** What stays the same. */
interface Form {
  readonly event: string | null
  readonly before: string
  readonly after: string
  /** What stands behind the padding, with whose beginning `after` ends; null where there is none. */
  readonly behind: string | null
}

/** A piece of the frame that was opened; nothing of that frame itself is kept. */
type OpenedPiece = Omit<StreamPiece, 'replace'>

/** A reader that has seen no frame: what it opens is opened as if it stood alone, which changes nothing for others. */
type FreshReader = () => StreamReader

/** Follows the frames of one stream for its reader, which reads those that are not as the one before. */
export class FrameTemplateCache {
  readonly #freshReader: FreshReader
  #form: Form | null = null
  #opened: readonly OpenedPiece[] | null = null
  /** Of the frame last followed; null where its reader reads it. */
  #text: string | null = null

  constructor(freshReader: FreshReader) {
    this.#freshReader = freshReader
  }

  /** The text of a frame that is as the one before; null where it is another, to be read and perhaps learned. */
  follow(frame: SseFrameText): string | null {
    this.#text = this.textOf(frame)
    if (this.#text === null) {
      // What another says may change what is known.
      this.#form = null
      this.#opened = null
    }
    return this.#text
  }

  /** Whether the frame last followed is as the one before, so that its reader did not read it. */
  get isAlike(): boolean {
    return this.#text !== null
  }

  /** Learns the frame last followed, whose member `member` says `text`; all else it means follows from the rest. */
  learn({ event, data }: SseFrameText, member: string, text: string): void {
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

  /** Learns how it was opened, where it has one text that goes on, whole ones beside it, and does nothing else. */
  learnOpening(opened: OpenFrame): void {
    if (this.#form === null || opened.pieces.filter(({ whole }) => !whole).length !== 1 || !opened.isPlain()) return
    this.#opened = opened.pieces.map(({ channel, kind, text, whole }) => ({ channel, kind, text, whole }))
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

  /** Opens the frame last followed; null where it is another, or none like it has been opened. */
  open(frame: SseFrame): FrameText | null {
    if (this.#text === null || this.#opened === null) return null
    return new AlikeFrame(frame, this.#text, this.#opened, this.#freshReader)
  }
}

const paddingStart = `"${paddingMember}":"`

/** Whether nothing but padding stands between an offset and the data's end. */
function isPadding(data: string, from: number, behind: string): boolean {
  const end = data.length - behind.length
  return from <= end && data.endsWith(behind) && saysNothingAsPadding(data.slice(from, end))
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

  constructor({ channel, kind, text, whole }: OpenedPiece, varying: string) {
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
  readonly #freshReader: FreshReader

  constructor(frame: SseFrame, text: string, opened: readonly OpenedPiece[], freshReader: FreshReader) {
    this.#frame = frame
    this.#freshReader = freshReader
    for (const piece of opened) this.pieces.push(new AlikePiece(piece, text))
  }

  bytes(): Uint8Array {
    return this.pieces.some(({ sent, text }) => sent !== text) ? this.#rewritten() : this.#frame.bytes
  }

  #rewritten(): Uint8Array {
    const opened = this.#openAlone()
    if (opened?.pieces.length !== this.pieces.length) throw new RangeError('A frame is not what it seemed to be')
    for (const [index, { sent }] of this.pieces.entries()) opened.pieces[index]?.replace(sent)
    return opened.bytes()
  }

  #openAlone(): FrameText | null {
    const { event, data } = this.#frame
    const reader = this.#freshReader()
    if (data !== null) reader.frame({ event, data })
    return reader.open(this.#frame)
  }
}
