/**
 * Whether a request does more at its provider than getting an answer. Such a request is neither answered from the cache
 * nor sent a second time: it reads or makes what the provider stores, calls other servers, or is allowed once.
 */
import { isGiven, isObject } from '../../languages/reading/json-value.ts'
import type { Exchange } from '../exchange.ts'

export function hasProviderEffects({ stored, dialect, mcp, grant, parsed }: Exchange): boolean {
  if (stored !== null || mcp !== null || grant !== null) return true
  if (dialect.endpoint !== undefined || dialect.countsTokens) return true
  if (parsed === null) return false
  if (parsed.background === true || effectMembers.some((name) => isGiven(parsed[name]))) return true
  return Array.isArray(parsed.tools) && parsed.tools.some((tool) => isObject(tool) && tool.type === 'mcp')
}

/** Earlier responses, conversations, containers for code, and MCP servers, all at the provider. */
const effectMembers = ['previous_response_id', 'conversation', 'container', 'mcp_servers'] as const
