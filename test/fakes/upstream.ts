/**
 * An OpenAI-compatible provider that does on request whatever a provider on the internet does by accident: cuts its
 * answer anywhere, stalls, resets, lies, sends garbage. It speaks HTTP over a bare socket, so that every byte and
 * every end of a connection is the script's, and keeps a record of each request: its exact bytes, and whether the
 * caller left before or after the headers of the answer.
 *
 * What it answers: the next reply queued by `next`, else what `when` set for the request's model, else a plain answer.
 */
import { createServer, type Socket } from 'node:net'
import { chatAnswer, chatStream } from './chat.ts'
import { createHttpReader, type ReadRequest } from './http-reader.ts'
import { cut, type SplitPlan } from './splits.ts'

export interface Reply {
  status?: number
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
  /** `close`: neither length nor chunks, the end of the connection ends the body. */
  framing?: 'length' | 'chunked' | 'close'
  /** Where the body is cut into pieces; each is one write, and one chunk where chunked. */
  split?: SplitPlan
  headersAfterMs?: number
  pauseBetweenPiecesMs?: number
  /**
   * Stops before the headers, or after so many pieces, and then says nothing more, resets or closes: once `until` is
   * settled, or a moment later where it is left out.
   */
  stop?: { after: 'nothing' | number; by: 'stall' | 'reset' | 'close'; until?: Promise<unknown> }
  /** Bytes sent in place of any HTTP answer; the connection is closed after them. */
  raw?: Uint8Array
}

export interface Call extends ReadRequest {
  /** The model the body names, or null. */
  model: string | null
  /** `answered` is when the last byte of the reply was handed to the socket. */
  state: 'running' | 'answered' | 'cancelled before headers' | 'cancelled after headers'
}

export interface FakeUpstream {
  /** With `/v1`, as OPENAI_BASE_URL takes it. */
  baseUrl: string
  calls: readonly Call[]
  /** Requests that have been read and neither answered nor cancelled. */
  running(): number
  /** Queues a reply for the next request, whatever its model. */
  next(reply: Reply): void
  /** Sets the reply to every request of this model. */
  when(model: string, reply: Reply | ((call: Call) => Reply)): void
  /** Refuses connections while `work` runs; what is connected is cut off. */
  refuseDuring<Result>(work: () => Promise<Result>): Promise<Result>
  forget(): void
  close(): Promise<void>
}

export const jsonReply = (body: Uint8Array = chatAnswer()): Reply => ({
  headers: { 'content-type': 'application/json' },
  body,
  framing: 'length',
})

export const streamReply = (body: Uint8Array = chatStream()): Reply => ({
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  body,
  framing: 'chunked',
})

const never: Reply = { stop: { after: 'nothing', by: 'stall' } }
/** Reads the request and never says a word. */
export const silentReply = never

/** Starts the fake on a free port of the loopback interface. */
export async function startFakeUpstream(): Promise<FakeUpstream> {
  const calls: Call[] = []
  const queue: Reply[] = []
  const byModel = new Map<string, Reply | ((call: Call) => Reply)>()
  const sockets = new Set<Socket>()

  const choose = (call: Call): Reply => {
    const chosen = queue.shift() ?? byModel.get(call.model ?? '')
    if (typeof chosen === 'function') return chosen(call)
    return chosen ?? (asksForStream(call.body) ? streamReply() : jsonReply())
  }
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    serve(socket, (request) => {
      const call: Call = { ...request, model: modelOf(request.body), state: 'running' }
      calls.push(call)
      return { call, reply: choose(call) }
    })
    socket.on('close', () => sockets.delete(socket))
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  await listen(0)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The fake upstream has no port')
  return {
    baseUrl: `http://127.0.0.1:${address.port}/v1`,
    calls,
    running: () => calls.filter(({ state }) => state === 'running').length,
    next: (reply) => queue.push(reply),
    when: (model, reply) => byModel.set(model, reply),
    async refuseDuring(work) {
      await stop()
      try {
        return await work()
      } finally {
        await listen(address.port)
      }
    },
    forget() {
      calls.length = 0
      queue.length = 0
    },
    close: stop,
  }
}

/** Answers the requests of one connection one after another and notices when the caller leaves. */
function serve(socket: Socket, accept: (request: ReadRequest) => { call: Call; reply: Reply }): void {
  const reader = createHttpReader()
  const waiting: ReadRequest[] = []
  let current: Call | null = null
  let headersSent = false
  let left = false
  const onLeave = () => {
    left = true
    if (current?.state === 'running') current.state = `cancelled ${headersSent ? 'after' : 'before'} headers`
  }
  const work = async () => {
    for (let request = waiting.shift(); request && !left; request = waiting.shift()) {
      const { call, reply } = accept(request)
      current = call
      headersSent = false
      const complete = await send(
        socket,
        reply,
        () => left,
        () => {
          headersSent = true
        },
      )
      // While it is silent the call goes on running until the caller leaves.
      if (!complete) return
      if (call.state === 'running') call.state = 'answered'
      current = null
    }
    current = null
  }
  socket.on('data', (bytes) => {
    const idle = current === null && waiting.length === 0
    waiting.push(...reader.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes))
    if (idle && waiting.length > 0) void work()
  })
  socket.on('end', onLeave)
  socket.on('close', onLeave)
  // A reset by the caller comes as an error and then as close, where it is counted.
  socket.on('error', onLeave)
}

/** Sends a reply by its script. False where it ended before the answer was whole. */
async function send(socket: Socket, reply: Reply, left: () => boolean, onHeaders: () => void): Promise<boolean> {
  const { status = 200, headers = {}, body = new Uint8Array(), framing = 'length', split = () => [], stop } = reply
  if (reply.headersAfterMs) await Bun.sleep(reply.headersAfterMs)
  if (left()) return false
  if (reply.raw) {
    socket.end(reply.raw)
    return true
  }
  if (stop?.after === 'nothing') return breakOff(socket, stop.by)
  socket.write(head(status, headers, framing, body.length))
  onHeaders()
  const pieces = cut(body, split(body))
  for (const [index, piece] of pieces.entries()) {
    if (stop && index === stop.after) return await breakOffAfterPieces(socket, stop)
    if (index > 0) await pause(reply.pauseBetweenPiecesMs)
    if (left()) return false
    await write(socket, framing === 'chunked' ? chunk(piece) : piece)
  }
  if (stop) return await breakOffAfterPieces(socket, stop)
  if (framing === 'chunked') socket.write('0\r\n\r\n')
  if (framing === 'close') socket.end()
  return true
}

function breakOff(socket: Socket, by: 'stall' | 'reset' | 'close'): boolean {
  if (by === 'reset') socket.resetAndDestroy()
  if (by === 'close') socket.end()
  return by !== 'stall'
}

/**
 * What was sent before is given the time to be read: a reset discards what still lies in the reader's buffer, and Bun's
 * fetch all that came before either end while the thread that asked was busy. A reader that nothing reached may well ask
 * again, so where that would be another story the script says how long.
 */
async function breakOffAfterPieces(
  socket: Socket,
  { by, until = Bun.sleep(50) }: Pick<NonNullable<Reply['stop']>, 'by' | 'until'>,
): Promise<boolean> {
  if (by !== 'stall') await until
  return breakOff(socket, by)
}

/** Lets each piece leave as a packet of its own before the next is written. */
const pause = (milliseconds: number | undefined): Promise<void> =>
  milliseconds ? Bun.sleep(milliseconds) : new Promise((resolve) => setImmediate(resolve))

const write = (socket: Socket, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    socket.write(bytes, () => resolve())
  })

const chunk = (piece: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])

function head(status: number, headers: Readonly<Record<string, string>>, framing: Reply['framing'], length: number) {
  const frame = {
    length: `content-length: ${length}\r\n`,
    chunked: 'transfer-encoding: chunked\r\n',
    close: 'connection: close\r\n',
  }[framing ?? 'length']
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Scripted\r\n${lines.join('')}${frame}\r\n`
}

function parsed(body: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    // Not JSON: the fake takes anything, and the record shows what came.
    return {}
  }
}

/** Of JSON, or of a form. */
function modelOf(body: Uint8Array): string | null {
  const { model } = parsed(body)
  if (typeof model === 'string') return model
  return /name="model"\r\n\r\n([^\r\n]*)/.exec(Buffer.from(body).toString('latin1'))?.[1] ?? null
}

const asksForStream = (body: Uint8Array): boolean => parsed(body).stream === true
