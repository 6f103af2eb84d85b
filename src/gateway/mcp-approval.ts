/**
 * What a server was not approved to offer is not there, wherever its caller heard of it (contract section 6, `/mcp`):
 * a tool or prompt by its name, a resource by its address, which an approved resource has or an approved template stands
 * for. So an address that a server neither lists nor has a template for is not to be had, whatever it hands out links to.
 */
import { Failure } from '../failure.ts'
import type { McpConnection, OfferKind } from '../mcp/connection.ts'
import { approvedNames, listKinds } from '../mcp/surface/lists.ts'
import { coveredBy } from '../mcp/surface/uri-template.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'

export interface WantedOffer {
  readonly kind: Exclude<OfferKind, 'resource_template'>
  /** As the server knows it: a name, or an address. */
  readonly name: string
}

/** Throws `mcp.unknown_tool` or `mcp.unknown_name`. */
export async function requireApproved(
  exchange: Exchange,
  gateway: Gateway,
  connection: McpConnection,
  { kind, name }: WantedOffer,
): Promise<void> {
  const approved = (of: OfferKind) => approvedOf(exchange, gateway, connection, of)
  if ((await approved(kind)).has(name)) return
  if (kind === 'resource') {
    const templates = await approved('resource_template')
    // A completion names the template itself.
    if (templates.has(name) || [...templates].some((template) => coveredBy(template, name))) return
  }
  throw new Failure(kind === 'tool' ? 'mcp.unknown_tool' : 'mcp.unknown_name')
}

async function approvedOf(
  { mcp }: Exchange,
  { mcp: { servers } }: Gateway,
  { server, capabilities }: McpConnection,
  kind: OfferKind,
): Promise<ReadonlySet<string>> {
  const session = given(given(mcp).session)
  const list = given(listKinds.values().find((each) => each.kind === kind) ?? null)
  if (capabilities[list.capability] === undefined) return new Set()
  // Other calls wait for the same names: that this one is given up ends nothing for them.
  const { signal } = new AbortController()
  return await session.seen(server).names(kind, () => approvedNames({ list, session, servers, signal }, server))
}
