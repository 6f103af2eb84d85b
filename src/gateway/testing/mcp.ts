/** MCP servers in this process behind a gateway, for the tests of this folder, and a caller that speaks plain HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { ErrorCode, McpError as SdkError } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'
import { SseSplitter } from '../../lib/http/sse.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord, McpServers } from '../../mcp/connection.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import type { SiblingWorkers } from '../mcp/sibling-workers.ts'
import { startTestGateway, type TestGateway } from './gateway.ts'

const anything = z.looseObject({})

/** How a test server handles a request, and what it can send meanwhile. */
export interface ServerContext {
  readonly params: Json
  readonly signal: AbortSignal
  progress(progress: number): void
  notify(method: string, params: Json): void
  ask(method: string, params: Json): Promise<Json>
}
export type Handler = (working: ServerContext) => Json | Promise<Json>

export interface TestMcpServer {
  readonly record: McpServerRecord
  /** By method. */
  readonly handlers: Record<string, Handler>
  /** Names that are not approved. */
  readonly unapproved: Set<string>
  /** Set to make it unreachable. */
  down: boolean
  /** The requests it received, in order. */
  readonly requests: { method: string; params: Json }[]
  /** The notifications it received, in order. */
  readonly notifications: { method: string; params: Json }[]
  connections: number
}

export const testMcpServer = (name: string, handlers: Record<string, Handler>): TestMcpServer => ({
  record: { id: `mcps-${name}`, name, version: 1, timeoutMilliseconds: 5000, approval: 'first_use' },
  handlers,
  unapproved: new Set(),
  down: false,
  requests: [],
  notifications: [],
  connections: 0,
})

export interface TestMcpServers extends McpServers {
  changed(): void
}

export function testMcpServers(...servers: TestMcpServer[]): TestMcpServers {
  const listeners = new Set<() => void>()
  return {
    unsolicited: 0,
    list: () => servers.map(({ record }) => record),
    async connect(record, caller) {
      const server = servers.find((each) => each.record.id === record.id)
      if (server === undefined || server.down) throw new Failure('dependency_unavailable')
      return await connect(server, caller)
    },
    isModern: () => false,
    approved: (record, _kind, offers) => {
      const held = servers.find((each) => each.record.id === record.id)?.unapproved
      return offers.filter(({ name }) => held?.has(name) !== true)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    changed() {
      for (const listener of listeners) listener()
    },
  }
}

async function connect(server: TestMcpServer, caller: McpCaller): Promise<McpConnection> {
  const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} }
  const peer = new Server({ name: server.record.name, version: '1' }, { capabilities })
  peer.fallbackRequestHandler = async ({ method, params = {} }, extra) => {
    server.requests.push({ method, params })
    const handler = server.handlers[method]
    if (handler === undefined) throw new SdkError(ErrorCode.MethodNotFound, method)
    const { progressToken } = extra._meta ?? {}
    const notify = (told: string, more: Json) => void extra.sendNotification({ method: told, params: more } as never)
    return await handler({
      params,
      signal: extra.signal,
      notify,
      progress: (progress) => notify('notifications/progress', { progressToken, progress, total: 2 }),
      ask: (asked, more) => extra.sendRequest({ method: asked, params: more } as never, anything),
    })
  }
  peer.removeRequestHandler('logging/setLevel')
  peer.fallbackNotificationHandler = async ({ method, params = {} }) => {
    server.notifications.push({ method, params })
  }
  const client = new Client({ name: 'gateway', version: '1' }, { capabilities: caller.capabilities })
  const calls = new Set<unknown>()
  const related = () => [...calls].at(-1)
  client.fallbackRequestHandler = async ({ method, params }, { signal }) =>
    caller.request(method, params, { signal, related: related() })
  client.fallbackNotificationHandler = async ({ method, params }) => caller.notify(method, params, related())
  const [here, there] = InMemoryTransport.createLinkedPair()
  await Promise.all([peer.connect(there), client.connect(here)])
  server.connections += 1
  return {
    server: server.record,
    modern: false,
    capabilities,
    instructions: null,
    async request(method, params, { signal, onProgress, related: call }) {
      if (call !== undefined) calls.add(call)
      try {
        const options =
          onProgress === undefined ? { signal } : { signal, onprogress: (told: object) => onProgress({ ...told }) }
        return await client.request({ method, params }, anything, options)
      } catch (thrown) {
        if (thrown instanceof SdkError)
          throw new McpError(thrown.code, thrown.message.replace(/^MCP error -?\d+: /, ''), thrown.data)
        throw thrown
      } finally {
        calls.delete(call)
      }
    },
    notify: (method, params) => client.notification({ method, params }),
    async close() {
      server.connections -= 1
      await client.close()
    },
  }
}

export interface McpCallerOptions {
  readonly secret?: string
  readonly version?: string
  readonly capabilities?: Json
}

/** A caller with a session. */
export interface TestCaller {
  readonly session: string
  post(message: unknown, headers?: Record<string, string>): Promise<Response>
  get(headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  /** Sends a request and returns the last message of the answer, in either form. */
  ask(method: string, params?: Json, id?: string | number): Promise<Json>
  call(name: string, args?: Json): Promise<Json>
}

export const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export async function startMcpGateway(
  servers: readonly TestMcpServer[],
  settings: Partial<Settings> = {},
  siblings?: SiblingWorkers,
): Promise<TestGateway & { servers: TestMcpServers; caller(options?: McpCallerOptions): Promise<TestCaller> }> {
  const behind = testMcpServers(...servers)
  const provider = () => Response.json({})
  const gateway = await startTestGateway(provider, settings, undefined, behind, undefined, undefined, siblings)
  return { ...gateway, servers: behind, caller: (options) => openCaller(gateway, options) }
}

export async function openCaller(
  { url, secret: own }: TestGateway,
  { secret = own, version = '2025-11-25', capabilities = {} }: McpCallerOptions = {},
): Promise<TestCaller> {
  const send = (message: unknown, headers: Record<string, string>) =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { ...jsonHeaders, authorization: `Bearer ${secret}`, ...headers },
      body: typeof message === 'string' ? message : JSON.stringify(message),
    })
  const clientInfo = { name: 'test', version: '1' }
  const params = { protocolVersion: version, capabilities, clientInfo }
  const begun = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, {})
  const session = begun.headers.get('mcp-session-id') ?? ''
  await begun.text()
  const own_ = { 'mcp-session-id': session, 'mcp-protocol-version': version }
  let count = 0
  const caller: TestCaller = {
    session,
    post: (message, headers = {}) => send(message, { ...own_, ...headers }),
    get: (headers = {}, signal) =>
      fetch(`${url}/mcp`, {
        headers: { authorization: `Bearer ${secret}`, accept: 'text/event-stream', ...own_, ...headers },
        ...(signal ? { signal } : {}),
      }),
    async ask(method, params = {}, id = `q${++count}`) {
      const response = await caller.post({ jsonrpc: '2.0', id, method, params })
      return (await messagesOf(response)).at(-1) ?? {}
    },
    call: (name, args = {}) => caller.ask('tools/call', { name, arguments: args }),
  }
  await (await caller.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).text()
  return caller
}

/** All messages of an answer, of JSON or SSE. */
export async function messagesOf(response: Response): Promise<Json[]> {
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return [JSON.parse(text)]
  return new SseSplitter(1 << 20)
    .push(new TextEncoder().encode(text))
    .flatMap(({ data }) => (data ? [JSON.parse(data)] : []))
}

/** Reads events of an open stream, one message at a time. */
export function eventsOf(response: Response): { next(): Promise<Json>; close(): Promise<void> } {
  const splitter = new SseSplitter(1 << 20)
  const reader = response.body?.getReader()
  const ready: Json[] = []
  return {
    async next() {
      for (;;) {
        const first = ready.shift()
        if (first !== undefined) return first
        const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done || value === undefined) throw new Error('The stream has ended')
        for (const { data } of splitter.push(value)) if (data) ready.push(JSON.parse(data))
      }
    },
    close: async () => await reader?.cancel(),
  }
}
