/**
 * Tool search (mcp/search): where a token or a server asks for it, a caller is shown two tools in place of all others.
 * `search_tools` answers what this caller may call, by the same policies as the lists. `call_tool` is the call itself:
 * it is taken for a call of the tool that it names before anything looks at it, so that policies, approvals, limits and
 * records are those of a direct call.
 */
import { Failure } from '../../../failure.ts'
import type { Json, McpServerRecord } from '../../../mcp/connection.ts'
import { isJson } from '../../../mcp/protocol.ts'
import { foundTool, limitOf, mostFound, searchTool } from '../../../mcp/search/search-offers.ts'
import { longestQuery, type Tool } from '../../../mcp/search/tool-index.ts'
import { mostTools } from '../../../mcp/search/tool-search.ts'
import { listKinds } from '../../../mcp/surface/lists.ts'
import { ownName } from '../../../mcp/surface/names.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { shownPage, usableServers, visibility } from './shown-lists.ts'

/** The servers whose tools are found by a search. */
export const searchedServers = ({ token }: Exchange, usable: readonly McpServerRecord[]): readonly McpServerRecord[] =>
  required(token).mcpTools === 'searched' ? usable : usable.filter(({ tools }) => tools === 'searched')

export async function searchTools(exchange: Exchange, gateway: Gateway): Promise<Json> {
  const mcp = required(exchange.mcp)
  mcp.name = searchTool
  const given = isJson(mcp.params.arguments) ? mcp.params.arguments : {}
  const { query } = given
  if (typeof query !== 'string' || query.trim() === '' || query.length > longestQuery) {
    const message = `query must be a text of 1 to ${longestQuery} characters`
    throw new Failure('invalid_parameter', { param: 'arguments.query', message })
  }
  const limit = limitOf(given.limit)
  if (limit === null) {
    const message = `limit must be a whole number from 1 to ${mostFound}`
    throw new Failure('invalid_parameter', { param: 'arguments.limit', message })
  }
  const searched = searchedServers(exchange, usableServers(exchange, gateway))
  const index = await gateway.mcp.search.indexFor(
    required(mcp.session),
    searched.map(({ id }) => id),
    () => toolsOf(exchange, gateway, searched),
  )
  const visible = visibility(exchange, gateway, 'tool')
  const servers = new Map(searched.map((server) => [server.name, server]))
  const found: Json[] = []
  for (const tool of index.find(query)) {
    if (found.length >= limit) break
    const own = ownName(tool.name)
    const server = servers.get(own?.server ?? '')
    if (own !== null && server !== undefined && visible(server, own.name)) found.push(foundTool(tool))
  }
  const text = found.length === 0 ? 'No tool matches: try other words' : JSON.stringify(found)
  return { content: [{ type: 'text', text }] }
}

/** All approved tools of these servers; what a caller may see of them is decided at each search. */
async function toolsOf(exchange: Exchange, gateway: Gateway, searched: readonly McpServerRecord[]): Promise<Tool[]> {
  const kind = required(listKinds.get('tools/list') ?? null)
  const tools: Tool[] = []
  let cursor: unknown
  do {
    const page = await shownPage(exchange, gateway, { kind, of: searched, cursor, visible: () => true })
    if (Array.isArray(page.tools)) tools.push(...page.tools.filter(isTool))
    cursor = page.nextCursor
  } while (cursor !== undefined && tools.length < mostTools)
  return tools.slice(0, mostTools)
}

const isTool = (offer: unknown): offer is Tool => isJson(offer) && typeof offer.name === 'string'
