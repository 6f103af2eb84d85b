/**
 * AWS event streams as server-sent events (AWS general reference, event stream encoding): each message becomes one
 * frame, its `:event-type` or `:exception-type` the event, its payload the data, as soon as its last byte is there.
 *
 * A message tells its length in its first four bytes; the codec checks both checksums. What fails them, is longer
 * than a message may be, or ends in its midst breaks the stream: nothing after it can be trusted. Loaded with the
 * first stream.
 */
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { withoutLength } from './send-request.ts'

/** The most that the encoding has had in one message (aws-c-event-stream); those of answers are far smaller. */
const maxMessageBytes = 16 * 1024 * 1024
const lengthBytes = 4
/** Prelude and its checksum, and that of the message. */
const minMessageBytes = 16

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const codec = new EventStreamCodec(
  (bytes) => decoder.decode(typeof bytes === 'string' ? encoder.encode(bytes) : bytes),
  (text) => encoder.encode(text),
)

/** The answer with its body as server-sent events, read only when they are asked for. */
export function asServerSentEvents(answer: Response): Response {
  const reader = (answer.body ?? new Blob([]).stream()).getReader()
  const frames = new Frames()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          if (frames.failure !== null) throw frames.failure
          const { done, value } = await reader.read()
          const text = done ? frames.end() : frames.push(value)
          if (text !== '') return controller.enqueue(encoder.encode(text))
          if (done && frames.failure === null) return controller.close()
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  const headers = withoutLength(answer.headers)
  headers.set('content-type', 'text/event-stream')
  return new Response(body, { status: answer.status, headers })
}

/** Turns bytes that may be split anywhere into frames, each message whole. */
class Frames {
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  /** How many bytes must be there before anything more can be read: pieces of a long message are joined once. */
  #wanted = lengthBytes
  /** Why reading stopped; earlier frames have been returned. */
  failure: Error | null = null

  /** The frames that these bytes complete, as text. */
  push(piece: Uint8Array): string {
    this.#held.push(piece)
    this.#heldBytes += piece.length
    if (this.#heldBytes < this.#wanted) return ''
    const bytes = this.#held.length === 1 ? piece : Buffer.concat(this.#held)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let text = ''
    let start = 0
    try {
      for (;;) {
        const left = bytes.length - start
        this.#wanted = left < lengthBytes ? lengthBytes : checkedLength(view.getUint32(start))
        if (left < this.#wanted) break
        text += frameOf(bytes.subarray(start, start + this.#wanted))
        start += this.#wanted
      }
    } catch (thrown) {
      this.failure = thrown instanceof Error ? thrown : new Error(String(thrown))
    }
    this.#keep(bytes.slice(start))
    return text
  }

  #keep(rest: Uint8Array): void {
    this.#held.length = 0
    if (rest.length > 0) this.#held.push(rest)
    this.#heldBytes = rest.length
  }

  end(): '' {
    if (this.#heldBytes > 0) this.failure = new RangeError('The stream ended within a message')
    return ''
  }
}

function checkedLength(length: number): number {
  if (length >= minMessageBytes && length <= maxMessageBytes) return length
  throw new RangeError('No message has this length')
}

/** Throws where a checksum is wrong. JSON has no line end outside of what it escapes, unless it is written in lines. */
function frameOf(message: Uint8Array): string {
  const { headers, body } = codec.decode(message)
  const textHeader = (name: string): string | null => {
    const header = headers[name]
    return header?.type === 'string' ? header.value : null
  }
  const event = textHeader(':event-type') ?? textHeader(':exception-type') ?? textHeader(':error-code') ?? 'message'
  const said = textHeader(':error-message')
  const data = said === null ? decoder.decode(body) : JSON.stringify({ message: said })
  const name = textHeader(':message-type') === 'error' ? `${event}Exception` : event
  return `event: ${name.replace(/[\r\n]/g, '')}\n${dataLines(data)}\n\n`
}

const dataLines = (data: string): string =>
  data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}`)
    .join('\n')
