/**
 * Streams in numbers, against the executable: how many can be held open at once, and what is left of those whose callers
 * leave. Memory has to stay flat, nothing may go on at the provider, and every one has its outcome.
 *
 *     bun test/load/generator/streams.ts held [streams=512] [seconds=60]
 *     bun test/load/generator/streams.ts aborted [streams=10000]
 */
import { connect, type Socket } from 'node:net'
import { createToken } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../../support/harness.ts'
import { residentBytes } from '../../support/processes.ts'
import { settledCount } from '../events/ledger-count.ts'
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

const mebibytes = (gatehouse: Gatehouse): number => Math.round(residentBytes(gatehouse.gatewayPid()) / 1024 ** 2)

async function held(gatehouse: Gatehouse, token: string, count: number, seconds: number): Promise<object> {
  const before = mebibytes(gatehouse)
  const sockets = await Promise.all(Array.from({ length: count }, () => openStream(gatehouse.gatewayUrl, token)))
  const resident: number[] = []
  for (let second = 0; second < seconds; second += 5) {
    resident.push(mebibytes(gatehouse))
    await Bun.sleep(5000)
  }
  const open = sockets.filter((socket) => !socket.destroyed).length
  for (const socket of sockets) socket.destroy()
  return { streams: count, seconds, open_at_the_end: open, resident_mebibytes: { before, held: resident } }
}

async function aborted(gatehouse: Gatehouse, token: string, count: number): Promise<object> {
  const before = mebibytes(gatehouse)
  const resident: number[] = []
  const startedAt = performance.now()
  for (let tenth = 0; tenth < 10; tenth++) {
    await abortStreams(gatehouse.gatewayUrl, token, count / 10)
    resident.push(mebibytes(gatehouse))
  }
  const perSecond = Math.round(count / ((performance.now() - startedAt) / 1000))
  return { streams: count, per_second: perSecond, resident_mebibytes: { before, each_tenth: resident } }
}

async function measure(kind: string, first: number, second: number): Promise<void> {
  const provider = startDrippingProvider(Number(process.env.DRIP_MS ?? 1000))
  try {
    await using gatehouse = await startGatehouse({ upstream: provider })
    const token = (await createToken(gatehouse)).token_value
    await abortStreams(gatehouse.gatewayUrl, token, 64)
    const outcomesBefore = (await settledCount(gatehouse.dataDirectory)).outcomes
    const found = kind === 'held' ? await held(gatehouse, token, first, second) : await aborted(gatehouse, token, first)
    await eventually(() => {
      if (provider.running() > 0) throw new Error(`${provider.running()} streams still run at the provider`)
    })
    const { outcomes } = await settledCount(gatehouse.dataDirectory)
    const left = { running_at_provider: provider.running(), outcomes_recorded: outcomes - outcomesBefore }
    console.log(JSON.stringify({ kind, ...found, ...left, resident_after: mebibytes(gatehouse) }, null, 2))
  } finally {
    await provider.stop()
  }
}

if (import.meta.main) {
  const [kind = 'held', first, second] = process.argv.slice(2)
  await measure(kind, Number(first ?? (kind === 'held' ? 512 : 10_000)), Number(second ?? 60))
}
