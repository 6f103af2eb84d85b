/** What an exchange on the MCP surface is about, and what the surface runs on. */

import { publishedName } from '../../mcp/surface/names.ts'
import { recordedOrNull, recordedText } from '../accounting/recorded-text.ts'
import type { Exchange } from '../exchange.ts'
import type { McpRequest } from './mcp-request.ts'

/**
 * What is called, as its record names it: the caller may have made the name, or the address, up. Null where nothing is.
 */
export function recordedName(exchange: Pick<Exchange, 'chain'>, { server, name }: McpRequest): string | null {
  if (server === null || name === null) return recordedOrNull(exchange, name)
  const prefix = publishedName(server.name, '')
  return prefix + recordedText(exchange, name.slice(prefix.length))
}

/** What is called, for the details of its record. */
export function mcpTarget(exchange: Pick<Exchange, 'chain'>, mcp: McpRequest) {
  const method = recordedText(exchange, mcp.method)
  const name = recordedName(exchange, mcp)
  return {
    model: name ?? method,
    method,
    server: mcp.server?.name ?? null,
    ...(mcp.method === 'tools/call' ? { tool: name } : {}),
  }
}

/** The sizes and the result, for the details of its record. */
export const mcpResult = ({ requestBytes, resultBytes, toolFailed }: McpRequest) => ({
  request_bytes: requestBytes,
  result_bytes: resultBytes,
  ...(toolFailed ? { tool_failed: true } : {}),
})
