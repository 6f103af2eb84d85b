/**
 * HTTP/1.1 to one target with the least that can be done for it: whole requests as bytes written to sockets that stay
 * open, answers looked at only as far as their end has to be found. A load generator by `fetch` takes several times as
 * much of the processor that it shares with what it measures, and adds the turns of its own threads to each time.
 *
 * Knows only the answers of this bench: a length, or chunks of JSON text, in which the mark of the end cannot occur.
 */
import type { Socket } from 'bun'
import { requestHeaders, type Target } from '../rig/target.ts'

export interface Answered {
  ok: boolean
  /** The last of the body, enough to see how it ended. */
  end: string
}

interface Call {
  /** Told of each piece of the body, as Latin-1. */
  readonly onBody: (text: string) => void
  readonly answered: PromiseWithResolvers<Answered>
  head: string | null
  status: number
  /** Bytes that are still to come; null where the body comes in chunks. */
  left: number | null
  end: string
}

interface Connection {
  call: Call | null
}

const lastChunk = '\r\n0\r\n\r\n'
/** Kept of a body: its last frame, and what ends the chunks. */
const endLength = 64

/** The whole request to a target, as it goes over the wire. */
export function requestBytes(target: Target, body: string): Buffer {
  const { host, pathname } = new URL(target.url)
  const headers = Object.entries({ host, ...requestHeaders(target), 'content-length': String(Buffer.byteLength(body)) })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`POST ${pathname} HTTP/1.1\r\n${lines}\r\n${body}`)
}

export class Connections implements Disposable {
  readonly #url: URL
  readonly #idle: Socket<Connection>[] = []
  readonly #all = new Set<Socket<Connection>>()

  constructor({ url }: Target) {
    this.#url = new URL(url)
  }

  /** Opens so many at once, so that the first requests do not wait for them. */
  async open(count: number): Promise<void> {
    this.#idle.push(...(await Promise.all(Array.from({ length: count }, () => this.#connect()))))
  }

  /** Sends a request and gives its answer once it is complete; one whose connection ends before is not ok. */
  async send(request: Buffer, onBody: (text: string) => void = () => undefined): Promise<Answered> {
    const socket = this.#idle.pop() ?? (await this.#connect())
    const answered = Promise.withResolvers<Answered>()
    socket.data.call = { onBody, answered, head: '', status: 0, left: null, end: '' }
    socket.write(request)
    return await answered.promise
  }

  [Symbol.dispose](): void {
    for (const socket of this.#all) socket.terminate()
  }

  async #connect(): Promise<Socket<Connection>> {
    const socket = await Bun.connect<Connection>({
      hostname: this.#url.hostname,
      port: Number(this.#url.port),
      data: { call: null },
      socket: {
        data: (from, bytes) => this.#take(from, bytes.toString('latin1')),
        close: (closed) => this.#lose(closed),
        error: (failed) => this.#lose(failed),
      },
    })
    this.#all.add(socket)
    return socket
  }

  #take(socket: Socket<Connection>, text: string): void {
    const { call } = socket.data
    if (call === null) return
    if (call.head === null) {
      this.#body(socket, call, text)
      return
    }
    call.head += text
    const end = call.head.indexOf('\r\n\r\n')
    if (end < 0) return
    const [head, body] = [call.head.slice(0, end), call.head.slice(end + 4)]
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    call.head = null
    call.status = Number(head.slice(9, 12))
    call.left = length === undefined ? null : Number(length)
    this.#body(socket, call, body)
  }

  #body(socket: Socket<Connection>, call: Call, text: string): void {
    call.onBody(text)
    call.end = (call.end + text).slice(-endLength)
    if (call.left !== null) call.left -= text.length
    if (call.left === null ? !call.end.endsWith(lastChunk) : call.left > 0) return
    socket.data.call = null
    this.#idle.push(socket)
    call.answered.resolve({ ok: call.status === 200, end: call.end })
  }

  #lose(socket: Socket<Connection>): void {
    this.#all.delete(socket)
    const index = this.#idle.indexOf(socket)
    if (index >= 0) this.#idle.splice(index, 1)
    socket.data.call?.answered.resolve({ ok: false, end: '' })
    socket.data.call = null
  }
}
