/** An MCP server of the official library of 2026-07-28, which has no sessions. What was sent to it is kept. */
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })

export class ModernMcpServer {
  /** Every request's headers. */
  readonly headers: Headers[] = []
  readonly called: string[] = []
  cancelled = 0
  readonly #handler = createMcpHandler(() => this.#server(), { legacy: 'reject' })
  readonly #listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: (request) => {
      this.headers.push(new Headers(request.headers))
      return this.#handler.fetch(request)
    },
  })

  get url(): string {
    return `http://127.0.0.1:${this.#listener.port}/mcp`
  }

  /** Tells all that its tools have changed. */
  async toolsChanged(): Promise<void> {
    this.#handler.notify.toolsChanged()
  }

  resourceChanged(uri: string): void {
    this.#handler.notify.resourceUpdated(uri)
  }

  async stop(): Promise<void> {
    await this.#handler.close()
    await this.#listener.stop(true)
  }

  #server(): McpServer {
    const capabilities = {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
    }
    const server = new McpServer({ name: 'modern', version: '1' }, { capabilities })
    const anything = z.looseObject({})
    server.registerTool('echo', { description: 'echo', inputSchema: anything }, async (given) => {
      this.called.push('echo')
      return text(JSON.stringify(given))
    })
    server.registerTool('elicit', { description: 'elicit', inputSchema: anything }, async (_given, { mcpReq }) => {
      this.called.push('elicit')
      const content = acceptedContent(mcpReq.inputResponses, 'city')
      if (content !== undefined) return text(JSON.stringify(content))
      const requestedSchema = { type: 'object' as const, properties: { city: { type: 'string' as const } } }
      return inputRequired({
        inputRequests: { city: inputRequired.elicit({ message: 'Which city?', requestedSchema }) },
      })
    })
    server.registerTool('steps', { description: 'steps', inputSchema: anything }, async (_given, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      for (const progress of progressToken === undefined ? [] : [1, 2])
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } })
      return text('stepped')
    })
    server.registerTool('say', { description: 'say', inputSchema: anything }, async (_given, { mcpReq }) => {
      await mcpReq.log('info', 'working')
      return text('said')
    })
    server.registerTool('wait', { description: 'wait', inputSchema: anything }, async (_given, { mcpReq }) => {
      this.called.push('wait')
      const { promise, resolve } = Promise.withResolvers<void>()
      mcpReq.signal.addEventListener('abort', () => resolve())
      await promise
      this.cancelled += 1
      return text('late')
    })
    server.registerResource('one', 'file:///one', {}, async ({ href }) => ({ contents: [{ uri: href, text: 'One' }] }))
    return server
  }
}
