/** Streams that are opened on sockets of their own, held or left, and a provider whose streams go on until then. */
import { connect, type Socket } from 'node:net'
import { requestBody } from '../rig/target.ts'

export interface DrippingProvider {
  baseUrl: string
  /** Streams that have begun and that nobody has ended. */
  running(): number
  begun(): number
  /** Frames of all streams so far. */
  frames(): number
  stop(): Promise<void>
}

const encoder = new TextEncoder()
const frame = encoder.encode(
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'drip ' } }] })}\n\n`,
)

/** A provider whose streams never end by themselves: a frame at once, then one each time `everyMs` have passed. */
export function startDrippingProvider(everyMs: number): DrippingProvider {
  let running = 0
  let begun = 0
  let frames = 0
  const drip = () => {
    let timer: ReturnType<typeof setInterval> | null = null
    return new ReadableStream({
      start(controller) {
        running += 1
        begun += 1
        const send = () => {
          frames += 1
          controller.enqueue(frame)
        }
        send()
        timer = setInterval(send, everyMs)
      },
      cancel() {
        running -= 1
        if (timer !== null) clearInterval(timer)
      },
    })
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      await request.arrayBuffer()
      return new Response(drip(), { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return {
    baseUrl: `${server.url.origin}/v1`,
    running: () => running,
    begun: () => begun,
    frames: () => frames,
    stop: () => server.stop(true),
  }
}

/** Opens a stream on a socket of its own, and gives it once its first frame has come. */
export function openStream(gatewayUrl: string, token: string): Promise<Socket> {
  const { hostname, port, host } = new URL(gatewayUrl)
  const body = requestBody(true)
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    })
    let received = ''
    socket.on('data', (bytes) => {
      if (received.includes('data: ')) return
      received += bytes
      if (received.includes('data: ')) resolve(socket)
      else if (!received.startsWith('HTTP/1.1 200')) socket.destroy(new Error(received.slice(0, 200)))
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`The gateway ended the stream: ${received.slice(0, 200)}`)))
  })
}

/** Opens streams, so many at a time, and leaves each as soon as its first frame has come. */
export async function abortStreams(gatewayUrl: string, token: string, count: number, atOnce = 64): Promise<void> {
  let left = count
  const leave = async () => {
    while (left > 0) {
      left -= 1
      const socket = await openStream(gatewayUrl, token)
      socket.destroy()
    }
  }
  await Promise.all(Array.from({ length: atOnce }, leave))
}
