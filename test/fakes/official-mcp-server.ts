/**
 * An MCP server of the official library over Streamable HTTP, with a session for each that connects. It offers what a
 * server can offer; what was sent to it is kept.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport as ServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ServerNotification,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

const text = (words: string) => ({ type: 'text' as const, text: words })
const capabilities = {
  tools: { listChanged: true },
  prompts: {},
  resources: { subscribe: true },
  logging: {},
  completions: {},
}
const toolNames = ['echo', 'mail', 'steps', 'wait', 'say', 'sample', 'elicit', 'leak', 'touch'] as const

export class OfficialMcpServer {
  /** Every request's headers. */
  readonly headers: Headers[] = []
  /** Arguments of `echo` and names of other tools, as they came. */
  readonly called: string[] = []
  cancelled = 0
  /** Of `echo`. */
  description = 'Says it again'
  readonly #sessions = new Map<string, ServerTransport>()
  readonly #servers = new Set<Server>()
  readonly #listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: (request) => this.#answer(request),
  })

  get url(): string {
    return `http://127.0.0.1:${this.#listener.port}/mcp`
  }

  get sessions(): number {
    return this.#sessions.size
  }

  /** Tells all that its tools have changed. */
  async toolsChanged(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.sendToolListChanged()))
  }

  async stop(): Promise<void> {
    await this.#listener.stop(true)
  }

  async #answer(request: Request): Promise<Response> {
    this.headers.push(new Headers(request.headers))
    const id = request.headers.get('mcp-session-id')
    const known = id === null ? await this.#begin() : this.#sessions.get(id)
    return known === undefined ? new Response(null, { status: 404 }) : await known.handleRequest(request)
  }

  async #begin(): Promise<ServerTransport> {
    const server = this.#server()
    const transport: ServerTransport = new ServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    })
    this.#servers.add(server)
    server.onclose = () => void this.#servers.delete(server)
    await server.connect(transport)
    return transport
  }

  #server(): Server {
    const server = new Server({ name: 'official', version: '1' }, { capabilities })
    // Two pages of one list.
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const [from, to] = params?.cursor === undefined ? [0, 4] : [4, undefined]
      const tools = toolNames.slice(from, to).map((name) => {
        return {
          name,
          description: name === 'echo' ? this.description : name,
          inputSchema: { type: 'object' as const },
        }
      })
      return { tools, ...(to === undefined ? {} : { nextCursor: 'the second page' }) }
    })
    server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: 'greet' }] }))
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) => ({
      messages: [{ role: 'user', content: text(`Hello from ${params.name}`) }],
    }))
    server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: 'file:///one', name: 'one' }] }))
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
      resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 'any' }],
    }))
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({
      contents: [{ uri: params.uri, text: `What is in ${params.uri}` }],
    }))
    server.setRequestHandler(SubscribeRequestSchema, () => ({}))
    server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: ['paris'] } }))
    server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given = {} } }, extra) => {
      this.called.push(name === 'echo' ? JSON.stringify(given) : name)
      const say = (message: ServerNotification) => extra.sendNotification(message)
      const { progressToken } = extra._meta ?? {}
      if (name === 'mail') return { content: [text('Write to ann@example.com')] }
      if (name === 'leak') return { content: [text(`AKIA${'Q3EGRIAVX5ZWJ7TN'} wizard`)] }
      if (name === 'say') await say({ method: 'notifications/message', params: { level: 'info', data: 'working' } })
      if (name === 'touch') {
        await server.sendResourceUpdated({ uri: 'file:///one' })
      }
      if (name === 'steps' && progressToken !== undefined) {
        for (const progress of [1, 2]) {
          await say({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } })
        }
      }
      if (name === 'wait') {
        const { promise, resolve } = Promise.withResolvers<void>()
        extra.signal.addEventListener('abort', () => resolve())
        await promise
        this.cancelled += 1
      }
      if (name === 'sample') {
        const messages = [{ role: 'user' as const, content: text('Who are you?') }]
        const answer = await server.createMessage({ messages, maxTokens: 5 }, { relatedRequestId: extra.requestId })
        return { content: [text(JSON.stringify(answer.content))] }
      }
      if (name === 'elicit') {
        const requestedSchema = { type: 'object' as const, properties: { city: { type: 'string' as const } } }
        const params = { message: 'Which city?', requestedSchema }
        const answer = await extra.sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)
        return { content: [text(JSON.stringify(answer.content))] }
      }
      return { content: [text(JSON.stringify(given))] }
    })
    return server
  }
}
