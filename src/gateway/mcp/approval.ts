/**
 * Refuses calls to offers that are not approved, wherever the caller learned of them (gateway/README.md, MCP). A tool
 * or prompt is known by its name, a resource by its address, which an approved resource has or an approved template
 * covers. Any other address, such as a link in a result, has no definition that could change. It is passed on when the
 * server is trusted on first use, and refused when approval is required.
 */
import { Failure } from '../../failure.ts'
import type { McpConnection, OfferKind } from '../../mcp/connection.ts'
import type { MarkedArgument } from '../../mcp/header-values.ts'
import { listKinds, shownNames } from '../../mcp/surface/lists.ts'
import type { ShownNames } from '../../mcp/surface/shown-offers.ts'
import { matchesTemplate } from '../../mcp/surface/uri-template.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

export interface RequestedOffer {
  readonly kind: Exclude<OfferKind, 'resource_template'>
  /** The server's own name or address of the offer. */
  readonly name: string
}

/** The arguments of the offer that HTTP headers repeat. Throws `mcp.unknown_tool` or `mcp.unknown_name`. */
export async function requireApproved(
  exchange: Exchange,
  gateway: Gateway,
  connection: McpConnection,
  { kind, name }: RequestedOffer,
): Promise<readonly MarkedArgument[]> {
  const seen = await namesFor(exchange, gateway, connection, kind)
  if (seen.approved.has(name)) return seen.marked.get(name) ?? []
  if (kind === 'resource' && !seen.held.has(name)) {
    const templates = await namesFor(exchange, gateway, connection, 'resource_template')
    // A completion names the template itself.
    const isOf = (template: string) => template === name || matchesTemplate(template, name)
    if ([...templates.approved].some(isOf)) return []
    if (connection.server.approval === 'first_use' && ![...templates.held].some(isOf)) return []
  }
  throw new Failure(kind === 'tool' ? 'mcp.unknown_tool' : 'mcp.unknown_name')
}

async function namesFor(
  { mcp }: Exchange,
  { mcp: { servers } }: Gateway,
  { server, capabilities }: McpConnection,
  kind: OfferKind,
): Promise<ShownNames> {
  const session = required(required(mcp).session)
  const list = required(listKinds.values().find((each) => each.kind === kind) ?? null)
  if (capabilities[list.capability] === undefined) return { approved: new Set(), held: new Set(), marked: new Map() }
  return await session.seen(server).names(kind, () => {
    // Other calls wait for the same lookup, so cancelling this call must not end it.
    const { signal } = new AbortController()
    return shownNames({ list, session, servers, signal }, server)
  })
}
