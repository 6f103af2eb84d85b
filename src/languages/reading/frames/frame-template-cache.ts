/**
 * Frames that differ from the frame before them in one text only: most of a stream. The meaning and the texts of such
 * a frame are known from the frame before, so it need not be parsed and searched.
 *
 * Two frames are alike if their data is the same before a text and after it, and the part between is, in each of
 * them, the inside of one JSON string. Then both parse to the same tree except for that string. `obfuscation`,
 * padding that differs in each frame, may differ if it holds no text (`languages/reading/texts/known-labels.ts`).
 *
 * Only compact JSON is learned, and alternating choices are not.
 */
import { type SseFrame, withData } from '../../../lib/http/sse.ts'
import type { FrameText, SseFrameText, StreamPiece, StreamReader } from '../../dialect.ts'
import { textOf } from '../json-value.ts'
import { paddingMember, saysNothingAsPadding } from '../texts/known-labels.ts'
import type { TextKind } from '../texts/text-slot.ts'
import type { OpenFrame } from './open-frame.ts'

/** The unchanged parts. */
interface Form {
  readonly event: string | null
  readonly before: string
  readonly after: string
  /** The part after the padding, whose beginning is the end of `after`; null without padding. */
  readonly behind: string | null
}

/** The same parts as they are sent: with the names of the fields, and the blank line. */
interface WireForm {
  readonly before: Buffer
  readonly after: Buffer
  readonly behind: Buffer | null
}

/** A piece of the opened frame; the frame itself is not kept. */
type OpenedPiece = Omit<StreamPiece, 'replace'>

/** A reader that has seen no frame: it opens a frame as if it stood alone, and other frames are not affected. */
type FreshReader = () => StreamReader

/** Follows the frames of one stream for its reader, which reads only frames that differ from the one before. */
export class FrameTemplateCache {
  readonly #freshReader: FreshReader
  #form: Form | null = null
  #opened: readonly OpenedPiece[] | null = null
  /** The learned form as bytes; made when it is first asked for. */
  #wire: WireForm | null = null
  /** The text of the last followed frame; null if its reader reads it. */
  #text: string | null = null

  constructor(freshReader: FreshReader) {
    this.#freshReader = freshReader
  }

  /** The text of a frame that matches the one before; null if it does not, so that it is read and perhaps learned. */
  follow(frame: SseFrameText): string | null {
    this.#text = this.textOf(frame)
    if (this.#text === null) {
      // A different frame may change what is known.
      this.#form = null
      this.#opened = null
    }
    return this.#text
  }

  /** Whether the last followed frame matched the one before, so that its reader did not read it. */
  get isAlike(): boolean {
    return this.#text !== null
  }

  /**
   * Learns the last followed frame, whose member `member` holds `text`; the rest of its meaning follows from the other
   * members.
   */
  learn({ event, data }: SseFrameText, member: string, text: string): void {
    if (text === '' || data.includes('\\')) return
    // Without escapes a name is written as it is, and a name that occurs once is the member's.
    const name = `"${member}"`
    const at = data.indexOf(name)
    if (data.indexOf(name, at + 1) >= 0 || !data.startsWith(`:"${text}"`, at + name.length)) return
    const start = at + name.length + 2
    const rest = data.slice(start + text.length)
    const padding = rest.indexOf(paddingStart)
    const paddingEnd = padding < 0 ? 0 : padding + paddingStart.length
    const after = padding < 0 ? rest : rest.slice(0, paddingEnd)
    const behind = padding < 0 ? null : rest.slice(rest.indexOf('"', paddingEnd))
    // Padding that holds a text belongs to this frame only.
    if (behind !== null && !isPadding(rest, paddingEnd, behind)) return
    this.#form = { event, before: data.slice(0, start), after, behind }
    this.#wire = null
  }

  /** Learns how a frame was opened if it has one continuing text, perhaps whole texts beside it, and nothing else. */
  learnOpening(opened: OpenFrame): void {
    if (this.#form === null || opened.pieces.filter(({ whole }) => !whole).length !== 1 || !opened.isPlain()) return
    this.#opened = opened.pieces.map(({ channel, kind, text, whole }) => ({ channel, kind, text, whole }))
  }

  /** The text of a frame that matches the learned one; null if it does not, or none was learned. */
  textOf({ event, data }: SseFrameText): string | null {
    if (this.#form === null || event !== this.#form.event || !data.startsWith(this.#form.before)) return null
    const { before, after, behind } = this.#form
    const end = endOfText(this.#form, data)
    if (end <= before.length || !data.startsWith(after, end)) return null
    if (behind !== null && !isPadding(data, end + after.length, behind)) return null
    const text = data.slice(before.length, end)
    return isVerbatim(text) ? text : unescaped(text)
  }

  /**
   * The length of the texts in bytes that are whole frames in the learned form, so that they need not be decoded; null
   * if they are not, and for a text that is not plain ASCII.
   */
  lengthIn(bytes: Uint8Array): number | null {
    if (this.#form === null) return null
    this.#wire ??= wireFormOf(this.#form)
    return this.#wire === null ? null : lengthInWireForm(bytes, this.#wire)
  }

  /** Opens the last followed frame; null if it differs, or no frame like it has been opened. */
  open(frame: SseFrame): FrameText | null {
    if (this.#text === null || this.#form === null || this.#opened === null) return null
    return new AlikeFrame(frame, this.#text, this.#form, this.#opened, this.#freshReader)
  }
}

/** Where the text ends in data that has it in this form. */
const endOfText = ({ before, after, behind }: Form, data: string): number =>
  behind === null ? data.length - after.length : data.indexOf('"', before.length)

/** Null for data in several lines, each of which has the name of its field. */
function wireFormOf({ event, before, after, behind }: Form): WireForm | null {
  if (before.includes('\n') || after.includes('\n') || behind?.includes('\n')) return null
  const begun = event === null ? 'data: ' : `event: ${event}\ndata: `
  const ended = behind === null ? `${after}\n\n` : after
  return {
    before: Buffer.from(begun + before),
    after: Buffer.from(ended),
    behind: behind === null ? null : Buffer.from(`${behind}\n\n`),
  }
}

/** The length of all texts in whole frames; null if the bytes are anything else. */
function lengthInWireForm(bytes: Uint8Array, { before, after, behind }: WireForm): number | null {
  let length = 0
  let at = 0
  while (at < bytes.length) {
    if (!isAt(bytes, at, before)) return null
    const start = at + before.length
    let end = start
    while (isPlain(bytes[end])) end++
    // Readers count a file in a `data:` URL otherwise.
    if (end === start || !isAt(bytes, end, after) || isAt(bytes, start, fileBegins)) return null
    length += end - start
    at = end + after.length
    if (behind === null) continue
    while (isAlphanumeric(bytes[at])) at++
    if (!isAt(bytes, at, behind)) return null
    at += behind.length
  }
  return length === 0 ? null : length
}

const fileBegins = Buffer.from('data:')

const isAt = (bytes: Uint8Array, at: number, part: Buffer): boolean =>
  at + part.length <= bytes.length && part.compare(bytes, at, at + part.length) === 0

/** Whether a byte is a character of its own that JSON writes without an escape. */
const isPlain = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= space && byte < rubout && byte !== quote && byte !== backslash

const isAlphanumeric = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a))

const paddingStart = `"${paddingMember}":"`

/** Whether only padding follows an offset, up to the data's end. */
function isPadding(data: string, from: number, behind: string): boolean {
  const end = data.length - behind.length
  return from <= end && data.endsWith(behind) && saysNothingAsPadding(data.slice(from, end))
}

/** Whether a text is written in JSON without escapes. */
function isVerbatim(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < space || unit === quote || unit === backslash) return false
  }
  return true
}

/** The value of the inside of a JSON string; null if it is not valid. */
function unescaped(inside: string): string | null {
  try {
    return textOf(JSON.parse(`"${inside}"`))
  } catch {
    // A quote ends the string early: the frame differs.
    return null
  }
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const rubout = 0x7f

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
  readonly #form: Form
  readonly #freshReader: FreshReader

  constructor(frame: SseFrame, text: string, form: Form, opened: readonly OpenedPiece[], freshReader: FreshReader) {
    this.#frame = frame
    this.#form = form
    this.#freshReader = freshReader
    for (const piece of opened) this.pieces.push(new AlikePiece(piece, text))
  }

  bytes(): Uint8Array {
    let changed: AlikePiece | null = null
    for (const piece of this.pieces) {
      if (piece.sent === piece.text) continue
      if (piece.whole) return this.#rewritten()
      changed = piece
    }
    return changed === null ? this.#frame.bytes : this.#withText(changed.sent)
  }

  /** The frame with this text in place of its only text that is not whole; nothing else in it needs a change. */
  #withText(text: string): Uint8Array {
    const data = this.#frame.data ?? ''
    const { before } = this.#form
    return withData(this.#frame, before + JSON.stringify(text).slice(1, -1) + data.slice(endOfText(this.#form, data)))
  }

  /** A whole text was replaced too. */
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
