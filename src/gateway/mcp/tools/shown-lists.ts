/**
 * What a caller is shown of the merged lists: servers by its token's bindings, names by the `tool-access` policies that
 * would apply to a call.
 */
import type { Json, McpServerRecord, OfferKind } from '../../../mcp/connection.ts'
import { McpError } from '../../../mcp/mcp-error.ts'
import { type ListKind, listPage } from '../../../mcp/surface/lists.ts'
import { publishedName } from '../../../mcp/surface/names.ts'
import type { ActivePolicy } from '../../../policies/chain.ts'
import { ModelView, type PolicyContext, RequestView } from '../../../policies/conditions/context.ts'
import { chainFor } from '../../admission/policy-chain.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { requestContext } from '../../policy/subject.ts'
import { mayUseServer } from '../call.ts'
import { connectOffer, connectTool, isNobody, lacksAccount } from './unconnected.ts'

/** The servers that the token may use and that are not under quarantine. */
export const usableServers = (exchange: Exchange, gateway: Gateway): McpServerRecord[] =>
  gateway.mcp.servers.list().filter((server) => !server.quarantined && mayUseServer(exchange, gateway, server))

interface Part {
  readonly kind: ListKind
  readonly of: readonly McpServerRecord[]
  readonly cursor: unknown
  /** Whether a call of this name would pass the policies. */
  visible(server: McpServerRecord, name: string): boolean
}

/** A page of the merged list of some servers. A server that cannot be listed is noted in the record and the log. */
export async function shownPage(
  exchange: Exchange,
  gateway: Gateway,
  { kind, of, cursor, visible }: Part,
): Promise<Json> {
  const session = required(required(exchange.mcp).session)
  const { servers } = gateway.mcp
  const unconnected: Json[] = []
  const page = await listPage({
    list: kind,
    session,
    servers: { list: () => of, approved: (server, kind, offers) => servers.approved(server, kind, offers) },
    cursor,
    cursorKey: gateway.worker.status.storedIdKey,
    signal: exchange.call.abort.signal,
    late: gateway.mcp.late,
    mayUse: (server, offer) => visible(server, String(offer[kind.named])),
    missing(server, error) {
      if (lacksAccount(error)) {
        if (kind.kind === 'tool' && visible(server, connectTool)) unconnected.push(connectOffer(server, error))
        return
      }
      if (isNobody(error)) return
      exchange.notes.push(`mcp.server_missing:${server.name}`)
      const line = { request_id: exchange.requestId, server: server.name, error: shownError(error) }
      gateway.log.warn(line, 'An MCP server is missing from a list')
    },
    repeats(server) {
      const line = { request_id: exchange.requestId, server: server.name }
      gateway.log.warn(line, 'An MCP server offers something twice: the first was shown')
    },
  })
  if (unconnected.length === 0 || !Array.isArray(page.tools)) return page
  return { ...page, tools: [...page.tools, ...unconnected] }
}

/** A server's message may hold anything, so the log gets only its code. */
const shownError = (error: unknown): string => (error instanceof McpError ? `MCP error ${error.code}` : String(error))

/** Whether a call of this name would pass the tool-access policies. */
export function visibility(
  exchange: Exchange,
  gateway: Gateway,
  kind: OfferKind,
): (server: McpServerRecord, name: string) => boolean {
  const context = requestContext(exchange, gateway)
  return (server, name) => {
    const published = publishedName(server.name, name)
    const chain = chainFor(exchange, gateway, { id: published, aliases: [] })
    if (chain.size === 0) return true
    const instead: PolicyContext = {
      ...context,
      model: new ModelView(published, server.name),
      request: new RequestView({
        family: exchange.dialect.family,
        model: published,
        stream: false,
        sessionId: exchange.sessionId,
        texts: () => [],
        body: { ...(kind === 'tool' ? { method: 'tools/call' } : {}), tools: [{ name: published }] },
        headers: exchange.request.headers,
      }),
    }
    return chain.at('pre_request').every((policy) => shows(policy, published, instead))
  }
}

function shows({ enforced, compiled, condition }: ActivePolicy, name: string, context: PolicyContext): boolean {
  if (!enforced || compiled instanceof Error || compiled.form !== 'whole') return true
  if (compiled.allowsTool?.(name) ?? true) return true
  try {
    return condition !== null && !condition(context)
  } catch {
    // A condition that cannot be evaluated hides the tool.
    return false
  }
}
