/** The `ws` package as a client, itself and not the stand-in that Bun puts in its place: its socket can be paused. */
import { createRequire } from 'node:module'
import type { WebSocket as WebSocketClient } from 'ws'

const { WebSocket }: { WebSocket: typeof WebSocketClient } = createRequire(import.meta.url)(
  '../../../node_modules/ws/index.js',
)

export interface TestSocket {
  send(frame: string | Uint8Array): void
  /** The next frames, as many as asked for; rejects where the connection ends before. */
  frames(count: number): Promise<string[]>
  ended: Promise<{ code: number; reason: string }>
  pause(): void
  resume(): void
  close(): void
}

/** Opens a connection. Rejects with the status where the handshake is refused. */
export async function openSocket(url: string, headers: Record<string, string>): Promise<TestSocket> {
  const socket = new WebSocket(url, { headers })
  const received: string[] = []
  let wake: (() => void) | null = null
  const ended = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => {
      resolve({ code, reason: String(reason) })
      wake?.()
    })
  })
  socket.on('message', (data) => {
    received.push(String(data))
    wake?.()
  })
  await new Promise<void>((resolve, reject) => {
    socket.on('open', resolve)
    socket.on('error', reject)
  })
  return {
    send: (frame) => socket.send(frame),
    async frames(count) {
      while (received.length < count) {
        if (socket.readyState === WebSocket.CLOSED) {
          throw new Error(`The connection ended after ${received.length} of ${count} frames: ${received.join('\n')}`)
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return received.splice(0, count)
    },
    ended,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => socket.close(),
  }
}
