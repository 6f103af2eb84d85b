/** An MCP server of the official library of 2026-07-28 on pipes, run as a program. */
import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(
  () => {
    const server = new McpServer({ name: 'command', version: '1' }, { capabilities: { tools: { listChanged: true } } })
    server.registerTool('city', { inputSchema: z.looseObject({}) }, async (_given, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      if (progressToken !== undefined)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
      const content = acceptedContent(mcpReq.inputResponses, 'city')
      if (content !== undefined) return { content: [{ type: 'text', text: JSON.stringify(content) }] }
      const requestedSchema = { type: 'object' as const, properties: { city: { type: 'string' as const } } }
      return inputRequired({ inputRequests: { city: inputRequired.elicit({ message: 'Which?', requestedSchema }) } })
    })
    return server
  },
  { legacy: 'reject' },
)
