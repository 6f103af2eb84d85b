/** The MCP servers of a gateway that has none. */
import { Failure } from '../failure.ts'
import type { McpServers } from './connection.ts'

export const noMcpServers: McpServers = {
  list: () => [],
  connect: () => Promise.reject(new Failure('mcp.unknown_name')),
  isModern: () => false,
  approved: () => [],
  onChange: () => () => undefined,
  unsolicited: 0,
}
