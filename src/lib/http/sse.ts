/**
 * Cuts a server-sent event stream into its frames without changing a byte (WHATWG HTML section 9.2). What goes in may
 * be split anywhere; what comes out are whole frames in order, each with the exact bytes it had on the wire, so that
 * they can be passed on as they came, and its data for those who must read it.
 *
 * A frame is everything up to and including its blank line. Lines end with LF, CR or CRLF, mixed as they like: after a
 * CR that would end a frame the next byte is awaited, because an LF there belongs to the same line end.
 *
 * It does not interpret `id` or `retry`, and it does not drop comments: they are bytes of a frame.
 */
export interface SseFrame {
  readonly bytes: Uint8Array
  /** The last `event` line's value; null if the frame has none. */
  readonly event: string | null
  /** The `data` lines joined by LF; null if the frame has none, such as a keep-alive comment. */
  readonly data: string | null
  /** It has more than data and one event name: comments, `id`, `retry`, unknown fields. */
  readonly asides?: true
  /** It begins with the stream's byte order mark. A byte order mark elsewhere is a part of its line. */
  readonly marked?: true
  /** The stream was cut off in this frame, or after its last line: its blank line is missing. */
  readonly cut?: true
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

export class SseSplitter {
  readonly #limit: number
  /** Parts of the current frame from earlier chunks. */
  #held: Uint8Array[] = []
  #heldLength = 0
  /** The current line is empty so far. */
  #lineEmpty = true
  #afterReturn = false
  /** The current frame has its blank line; only an LF of the same line end may follow. */
  #complete = false
  #firstFrame = true

  /** `maxFrameBytes` limits how much of an unfinished frame is held. */
  constructor(maxFrameBytes: number) {
    this.#limit = maxFrameBytes
  }

  /** Whether the next byte begins a frame. */
  get isBetweenFrames(): boolean {
    return this.#heldLength === 0 && this.#lineEmpty && !this.#afterReturn && !this.#complete
  }

  /** Takes the next bytes and returns the frames that they complete. Throws `RangeError` if a frame is too long. */
  push(chunk: Uint8Array): SseFrame[] {
    const frames: SseFrame[] = []
    const endOfLine = lineSearch(chunk)
    let start = 0
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index]
      if (this.#complete) {
        const end = byte === lineFeed ? index + 1 : index
        frames.push(this.#take(chunk, start, end))
        start = end
        if (byte === lineFeed) continue
      }
      if (byte === lineFeed) {
        if (this.#afterReturn) this.#afterReturn = false
        else if (this.#lineEmpty) {
          frames.push(this.#take(chunk, start, index + 1))
          start = index + 1
        } else this.#lineEmpty = true
      } else if (byte === carriageReturn) {
        this.#complete = this.#lineEmpty
        this.#afterReturn = true
        this.#lineEmpty = true
      } else {
        this.#afterReturn = false
        this.#lineEmpty = false
        // Most bytes are inside a line; jumping to its end keeps this loop off them.
        index = endOfLine(chunk, index) - 1
      }
    }
    if (start < chunk.length) this.#hold(part(chunk, start, chunk.length))
    return frames
  }

  /** The rest when the stream has ended, as a frame without its blank line; null if nothing is left. */
  end(): SseFrame | null {
    return this.#heldLength === 0 ? null : { ...this.#take(new Uint8Array(0), 0, 0), cut: true }
  }

  #hold(part: Uint8Array): void {
    this.#held.push(part)
    this.#heldLength += part.length
    if (this.#heldLength > this.#limit) throw new RangeError(`An SSE frame is longer than ${this.#limit} bytes`)
  }

  /** The frame that ends with these bytes of the chunk. */
  #take(chunk: Uint8Array, start: number, end: number): SseFrame {
    let bytes = part(chunk, start, end)
    if (this.#heldLength > 0) {
      this.#held.push(bytes)
      bytes = Buffer.concat(this.#held)
      this.#held = []
      this.#heldLength = 0
    }
    if (bytes.length > this.#limit) throw new RangeError(`An SSE frame is longer than ${this.#limit} bytes`)
    this.#lineEmpty = true
    this.#afterReturn = false
    this.#complete = false
    // A byte order mark may precede the stream's first line and is no part of it.
    const isMarked = this.#firstFrame && hasByteOrderMark(bytes)
    this.#firstFrame = false
    return isMarked ? { ...readFrame(bytes, markUnits), marked: true } : readFrame(bytes, 0)
  }
}

/** A part of a chunk. Most chunks are one frame, for which no view has to be made. */
const part = (chunk: Uint8Array, start: number, end: number): Uint8Array =>
  start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end)

type LineSearch = (bytes: Uint8Array, from: number) => number

/** The runtime finds one byte much faster than a loop finds one of two, and most streams have no CR. */
const lineSearch = (bytes: Uint8Array): LineSearch => (bytes.includes(carriageReturn) ? endOfLine : lineFeedAfter)

function lineFeedAfter(bytes: Uint8Array, from: number): number {
  const index = bytes.indexOf(lineFeed, from)
  return index < 0 ? bytes.length : index
}

function endOfLine(bytes: Uint8Array, from: number): number {
  let index = from
  for (; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === lineFeed || byte === carriageReturn) break
  }
  return index
}

const markBytes = 3
const markUnits = 1
const hasByteOrderMark = (bytes: Uint8Array) => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

const dataBegins = 'data: '
const frameEnds = '\n\n'

/**
 * A frame with the data and event name in its bytes; one space after the colon is not part of either. Line ends, names
 * and colons are ASCII, which no other character's bytes contain, so the text is decoded first.
 */
function readFrame(bytes: Uint8Array, from: number): SseFrame {
  const text = decoder.decode(bytes)
  const hasReturn = text.includes('\r')
  const last = text.length - frameEnds.length
  const isDataAlone = from === 0 && !hasReturn && text.startsWith(dataBegins) && text.endsWith(frameEnds)
  if (isDataAlone && text.indexOf('\n') === last) {
    return { bytes, event: null, data: text.slice(dataBegins.length, last) }
  }
  let event: string | null = null
  let data: string | null = null
  let asides = false
  for (const line of text.slice(from).split(hasReturn ? anyLineEnd : '\n')) {
    const value = valueOfLine(line, 'data')
    if (value !== null) data = data === null ? value : `${data}\n${value}`
    else if (line !== '') {
      const named = valueOfLine(line, 'event')
      asides ||= named === null || event !== null
      event = named ?? event
    }
  }
  return asides ? { bytes, event, data, asides } : { bytes, event, data }
}

const anyLineEnd = /\r\n|\r|\n/

/** The value of a line if it has this field, otherwise null. */
function valueOfLine(line: string, field: string): string | null {
  if (!line.startsWith(field)) return null
  if (line.length === field.length) return ''
  if (line[field.length] !== ':') return null
  return line.slice(line[field.length + 1] === ' ' ? field.length + 2 : field.length + 1)
}

/** The start of the line after the one that ends at `end`. */
const afterLine = (frame: Uint8Array, end: number): number =>
  frame[end] === carriageReturn && frame[end + 1] === lineFeed ? end + 2 : end + 1

const encoder = new TextEncoder()
const dataField = encoder.encode('data')
const colon = 0x3a
const space = 0x20

/** Whether a line gives data. */
function isData(frame: Uint8Array, start: number, end: number): boolean {
  for (let index = 0; index < dataField.length; index++) if (frame[start + index] !== dataField[index]) return false
  const after = start + dataField.length
  return after === end || frame[after] === colon
}

/** Whether a frame is one line of data and its blank line, in the usual form. */
const isDataLine = (bytes: Uint8Array): boolean =>
  isData(bytes, 0, bytes.length) &&
  bytes[dataField.length + 1] === space &&
  bytes.indexOf(lineFeed) === bytes.length - frameEnds.length &&
  bytes.at(-1) === lineFeed &&
  !bytes.includes(carriageReturn)

/** A frame's bytes with other data; its other lines, `event` and `id` among them, stay unchanged. */
export function withData({ bytes, marked }: Pick<SseFrame, 'bytes' | 'marked'>, data: string): Uint8Array {
  if (isDataLine(bytes) && !data.includes('\n')) return encoder.encode(dataBegins + data + frameEnds)
  const parts: Uint8Array[] = []
  let written = false
  let start = 0
  if (marked) {
    parts.push(bytes.subarray(0, markBytes))
    start = markBytes
  }
  while (start < bytes.length) {
    const end = endOfLine(bytes, start)
    const next = Math.min(afterLine(bytes, end), bytes.length)
    if (!isData(bytes, start, end)) addLine(parts, bytes.subarray(start, next))
    else if (!written) {
      addLine(parts, encoder.encode(`data: ${data.replaceAll('\n', '\ndata: ')}`))
      parts.push(bytes.subarray(end, next))
      written = true
    }
    start = next
  }
  return Buffer.concat(parts)
}

const lineEnd = encoder.encode('\n')
const lineEnds = encoder.encode('\n\n')

/** Adds the missing blank line to a frame. After a CR the first LF belongs to the same line end. */
export function completed({ cut: _, ...frame }: SseFrame): SseFrame {
  const added = frame.bytes.at(-1) === lineFeed ? lineEnd : lineEnds
  return { ...frame, bytes: Buffer.concat([frame.bytes, added]) }
}

/** Adds a line. If the line before was left out, two line ends must not join to an empty line. */
function addLine(parts: Uint8Array[], line: Uint8Array): void {
  if (line[0] === lineFeed && parts.at(-1)?.at(-1) === carriageReturn) parts.push(lineEnd)
  parts.push(line)
}

const emptyComment = encoder.encode(':\n\n')

/**
 * A frame's bytes with only its data and, if `event` is not null, that event's line. A frame without data becomes an
 * empty comment, which keeps the connection alive.
 */
export function withoutAsides(frame: Pick<SseFrame, 'bytes' | 'data' | 'marked'>, event: string | null): Uint8Array {
  const { bytes, data, marked } = frame
  if (data === null) return emptyComment
  const parts: Uint8Array[] = event === null ? [] : [encoder.encode(`event: ${event}\n`)]
  let start = marked ? markBytes : 0
  while (start < bytes.length) {
    const end = endOfLine(bytes, start)
    const next = Math.min(afterLine(bytes, end), bytes.length)
    // Only a byte order mark hides an empty line that does not end the frame.
    const isEnd = end === start && next === bytes.length
    if (isEnd || isData(bytes, start, end)) addLine(parts, bytes.subarray(start, next))
    start = next
  }
  return Buffer.concat(parts)
}
