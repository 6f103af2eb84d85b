/** A gateway on a free port in front of an upstream on another, for the tests of this folder. */
import type { Settings } from '../../config.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import type { McpServers } from '../../mcp/connection.ts'
import { noMcpServers } from '../../mcp/no-servers.ts'
import { noTracer, type Tracer } from '../../telemetry/tracer.ts'
import type { TokenCounter } from '../../usage/pricing/token-counter.ts'
import { noSiblings, type SiblingWorkers } from '../mcp/sibling-workers.ts'
import { createGateway, type GatewayServer } from '../server.ts'
import { createTestWorker, type TestWorker, testProvider, testSettings } from './worker.ts'

export interface TestGateway {
  worker: TestWorker
  gateway: GatewayServer
  url: string
  /** A secret that may use everything. */
  secret: string
  /** The requests that the upstream received, in order. */
  seen: { request: Request; body: string }[]
  /** How many upstream calls were aborted. */
  aborted(): number
  chat(
    body: unknown,
    init?: { headers?: Record<string, string>; signal?: AbortSignal; secret?: string },
  ): Promise<Response>
  stop(): Promise<void>
}

type Upstream = (request: Request, body: string) => Response | Promise<Response>

export async function startTestGateway(
  upstream: Upstream,
  settings: Partial<Settings> = {},
  tracer: Tracer = noTracer,
  mcpServers: McpServers = noMcpServers,
  log: Log = silentLog,
  tokenCounter: TokenCounter = { count: async () => null },
  siblings: SiblingWorkers = noSiblings,
): Promise<TestGateway> {
  const seen: TestGateway['seen'] = []
  let aborted = 0
  const provider = Bun.serve({
    port: 0,
    development: false,
    idleTimeout: 0,
    async fetch(request) {
      request.signal.addEventListener('abort', () => {
        aborted += 1
      })
      const body = await request.clone().text()
      seen.push({ request, body })
      return upstream(request, body)
    },
  })
  const worker = createTestWorker()
  worker.upstreams.push(testProvider({ baseUrl: `http://127.0.0.1:${provider.port}` }))
  const gateway = createGateway({
    worker,
    settings: testSettings(settings),
    fetch,
    clock: systemClock,
    newId,
    log,
    tracer,
    tokenCounter,
    mcp: mcpServers,
    siblings,
    documents: { openapi: async () => ({ openapi: '3.1.0' }) },
  })
  const server = Bun.serve({
    port: 0,
    development: false,
    fetch: (request, self) => gateway.fetch(request, self),
    websocket: gateway.websocket,
  })
  const url = `http://127.0.0.1:${server.port}`
  const secret = worker.addToken()
  return {
    worker,
    gateway,
    url,
    secret,
    seen,
    aborted: () => aborted,
    chat: (body, { headers = {}, signal, secret: other = secret } = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${other}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    async stop() {
      await gateway.drain()
      await server.stop(true)
      await provider.stop(true)
    },
  }
}

/** A server that holds a connection, and the idle timeouts it was given, in seconds. */
export function testListener() {
  const limits: number[] = []
  const timeout = (_request: Request, seconds: number) => void limits.push(seconds)
  return { limits, listener: { timeout, stop: async () => undefined, pendingRequests: 0, upgrade: () => false } }
}

export const question = { model: 'gpt-test', messages: [{ role: 'user', content: 'Good morning' }] }

export const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-test',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: {
    prompt_tokens: 11,
    completion_tokens: 7,
    total_tokens: 18,
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  },
}
