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

/** What its outcome's event says of it. */
export const mcpDetails = (exchange: Pick<Exchange, 'chain'>, mcp: McpRequest) => {
  const { method, server, requestBytes, resultBytes, toolFailed } = mcp
  const name = recordedName(exchange, mcp)
  return {
    model: name ?? recordedText(exchange, method),
    method: recordedText(exchange, method),
    server: server?.name ?? null,
    ...(method === 'tools/call' ? { tool: name } : {}),
    request_bytes: requestBytes,
    result_bytes: resultBytes,
    ...(toolFailed ? { tool_failed: true } : {}),
  }
}
