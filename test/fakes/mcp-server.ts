/**
 * An MCP server over Streamable HTTP that does what it is told, wrong things above all: answers of other ids, results
 * without end, streams that never stop, silence. What was sent to it is kept.
 */

export interface Received {
  method: string
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at what it expects
  body: any
}

type Message = Record<string, unknown>

/** What it answers to a request: a result, an answer of its own making, or (undefined) what is usual. */
export type Behaviour = (message: Message, signal: AbortSignal) => Message | Response | Promise<Response> | undefined

const encoder = new TextEncoder()

export const frame = (message: unknown, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

/** A stream of these frames; one that is not ended stays open until its reader leaves. */
export function stream(frames: Iterable<string>, { ends = true } = {}): Response {
  const iterator = frames[Symbol.iterator]()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { value, done } = iterator.next()
      if (done !== true) controller.enqueue(encoder.encode(value))
      else if (ends) controller.close()
      else return new Promise<void>(() => undefined)
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

export const answer = ({ id }: Message, result: Message): Message => ({ jsonrpc: '2.0', id, result })

export class FakeMcpServer {
  readonly received: Received[] = []
  behaviour: Behaviour = () => undefined
  /** What a GET brings; null: 405. */
  listening: (() => Response) | null = null
  protocolVersion: string | null = null
  /** It says nothing to what has no answer. */
  deaf = false
  sessions = 0
  refusedTokens: string[] = []
  readonly #sessions = new Set<string>()
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: (request) => this.#fetch(request),
  })

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/mcp`
  }

  methods(): string[] {
    return this.received.map(({ method, body }) => body?.method ?? (body === null ? method : 'answer'))
  }

  /** The last message of this method. */
  last(method: string): Received | undefined {
    return this.received.findLast(({ body }) => body?.method === method)
  }

  forgetSessions(): void {
    this.#sessions.clear()
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }

  async #fetch(request: Request): Promise<Response> {
    const text = await request.text()
    const body = text === '' ? null : JSON.parse(text)
    const { method, headers } = request
    this.received.push({ method, headers, body })
    const token = headers.get('authorization')?.replace('Bearer ', '') ?? ''
    if (this.refusedTokens.includes(token)) return new Response(null, { status: 401 })
    const session = headers.get('mcp-session-id')
    if (session !== null && !this.#sessions.has(session)) return new Response(null, { status: 404 })
    if (method === 'GET') return this.listening?.() ?? new Response(null, { status: 405 })
    if (method === 'DELETE') return new Response(null, { status: 200 })
    if (body.id === undefined || body.method === undefined) {
      if (this.deaf) await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      return new Response(null, { status: 202 })
    }
    const behaved = await this.behaviour(body, request.signal)
    if (behaved instanceof Response) return behaved
    if (behaved !== undefined) return Response.json(behaved)
    return this.#usual(body)
  }

  #usual(message: Message): Response {
    if (message.method !== 'initialize') return Response.json(answer(message, { echoed: message.params ?? null }))
    const { protocolVersion } = { protocolVersion: '', ...(message.params ?? {}) }
    const session = `session-${++this.sessions}`
    this.#sessions.add(session)
    const capabilities = { tools: { listChanged: true }, unheardOf: { of: 1 } }
    const result = { protocolVersion: this.protocolVersion ?? protocolVersion, capabilities, serverInfo: {} }
    return Response.json(answer(message, { ...result, instructions: 'Be kind' }), {
      headers: { 'mcp-session-id': session },
    })
  }
}
