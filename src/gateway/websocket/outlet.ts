/** What leaves through a WebSocket to its peer. A peer that reads slowly slows whoever waits for `send`. */
import { SseSplitter } from '../../lib/http/sse.ts'

/** While more than this waits to leave, only one further frame is sent at a time. */
const lowWater = 64 * 1024
const maxFrameBytes = 16 * 1024 * 1024

/** The part of the server's side of a WebSocket that is used. */
export interface Peer {
  /** Bytes sent, -1 when they wait to leave, 0 when the connection is gone. */
  send(text: string): number
  getBufferedAmount(): number
  close(code: number, reason: string): void
  /** Ends the connection without a close frame. */
  terminate(): void
  /** Stops and restarts reading what the peer sends. */
  pause(): void
  resume(): void
}

export class Outlet {
  #peer: Peer | null = null
  #isClosed = false
  /** Those who wait for what was sent to leave. */
  readonly #waiting: (() => void)[] = []

  open(peer: Peer): void {
    this.#peer = peer
  }

  get isOpen(): boolean {
    return this.#peer !== null && !this.#isClosed
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** What was sent waits to leave. */
  get isFull(): boolean {
    return this.#waiting.length > 0
  }

  /** Resolves when more may be sent; at once without a promise while the peer keeps up. */
  send(text: string): Promise<void> | void {
    if (this.#isClosed || this.#peer === null || this.#peer.send(text) !== -1) return
    return new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** What was sent has left, at least in part. */
  drained(): void {
    if ((this.#peer?.getBufferedAmount() ?? 0) <= lowWater) this.#wake()
  }

  closed(): void {
    this.#isClosed = true
    this.#wake()
  }

  close(code: number, reason: string): void {
    if (!this.#isClosed) this.#peer?.close(code, reason)
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** Passes the events of an answer on, the data of each as one frame. `left`: the peer is gone, or wants no more. */
export async function passEvents(
  body: ReadableStream<Uint8Array>,
  left: AbortSignal,
  send: (data: string) => Promise<void> | void,
): Promise<void> {
  const splitter = new SseSplitter(maxFrameBytes)
  const reader = body.getReader()
  // A cancelled stream informs its exchange at once. One that had broken already cannot be cancelled, which does not
  // matter here.
  const leave = () => void reader.cancel().catch(() => undefined)
  if (left.aborted) leave()
  else left.addEventListener('abort', leave, { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    for (const { data } of splitter.push(value)) if (data !== null) await send(data)
  }
  const rest = splitter.end()?.data ?? null
  if (rest !== null) await send(rest)
}
