/** What a call to an MCP server costs, by the prices in the server's record. */
import type { CallLimits } from '../../../mcp/call-limits.ts'
import { ownName } from '../../../mcp/surface/names.ts'
import { isHeldCall, type McpRequest } from '../mcp-request.ts'

/** The server's own name of the tool that is called; null for a request that calls none. */
export const calledTool = ({ method, name }: Pick<McpRequest, 'method' | 'name'>): string | null =>
  method === 'tools/call' && name !== null ? (ownName(name)?.name ?? null) : null

/** The price and the limits of a request; null for a server that has none. */
export function callTerms(mcp: McpRequest): ReturnType<CallLimits['of']> | null {
  const limits = mcp.server?.callLimits ?? null
  return limits === null ? null : limits.of(calledTool(mcp))
}

/** Nano-dollars; 0 for the answers to a call that waits at its server, which were paid with the call. */
export const callPrice = (mcp: McpRequest): number => (isHeldCall(mcp) ? 0 : (callTerms(mcp)?.price ?? 0))
