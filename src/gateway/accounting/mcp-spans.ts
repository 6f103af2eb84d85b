/**
 * The spans of an MCP exchange by OpenTelemetry's MCP conventions: one for the caller's request and, under it, one for
 * the call to the server. The session id grants access to the session, so a span names the session by a label.
 */
import { type RpcId, rpcKey } from '../../lib/json/json-rpc.ts'
import { attribute, attributes, hostAttributes, type Span } from '../../telemetry/span.ts'
import type { Exchange, Outcome } from '../exchange.ts'
import type { McpRequest } from '../mcp/mcp-request.ts'
import { recordedName } from '../mcp/recorded-request.ts'
import { recordedText } from './recorded-text.ts'

type SpanDescription = Pick<Span, 'name' | 'attributes' | 'error'>

const longestId = 256

/** The attributes of the span of the exchange itself. */
export function mcpRequestSpan(exchange: Exchange, mcp: McpRequest, outcome: Outcome): SpanDescription {
  const { id, session } = mcp
  const told = sharedDescription(exchange, mcp, recordedName(exchange, mcp), outcome)
  return {
    ...told,
    attributes: attributes({
      ...told.attributes,
      [attribute.mcpSession]: exchange.sessionId,
      [attribute.mcpVersion]: session?.protocolVersion,
      [attribute.rpcId]: id === null ? null : shownId(exchange, id),
      [attribute.transport]: 'tcp',
    }),
  }
}

/** The span of the call to the server; empty when there was no call. */
export function mcpServerSpans(exchange: Exchange, mcp: McpRequest, parent: Span, outcome: Outcome): Span[] {
  const { calling, server } = mcp
  if (calling === null) return []
  const told = sharedDescription(exchange, mcp, recordedText(exchange, calling.name), outcome)
  const at = (monotonic: number) => exchange.startedAt + (monotonic - exchange.startedMonotonic)
  const origin = server?.origin
  return [
    {
      ...told,
      kind: 'client',
      traceId: parent.traceId,
      spanId: calling.spanId,
      parentSpanId: parent.spanId,
      state: parent.state,
      startedAt: at(calling.startedMonotonic),
      endedAt: calling.endedMonotonic === null ? parent.endedAt : at(calling.endedMonotonic),
      attributes: attributes({
        ...told.attributes,
        [attribute.provider]: server?.name,
        [attribute.transport]: origin === undefined ? null : origin === null ? 'pipe' : 'tcp',
        ...hostAttributes(origin),
      }),
    },
  ]
}

/** The attributes that both spans share: the method, and the name of what is called as the receiver knows it. */
function sharedDescription(
  exchange: Exchange,
  mcp: McpRequest,
  name: string | null,
  outcome: Outcome,
): SpanDescription {
  const { errorCode } = mcp
  const method = recordedText(exchange, mcp.method)
  const named = name === null ? null : nameAttributeOf(method)
  const error = errorOf(mcp, outcome)
  return {
    // Resource addresses have too many values for span names.
    name: named === null || named === attribute.resourceUri ? method : `${method} ${name}`,
    attributes: attributes({
      [attribute.mcpMethod]: method,
      [attribute.operation]: method === 'tools/call' ? 'execute_tool' : null,
      ...(named !== null && { [named]: name }),
      [attribute.rpcStatus]: errorCode === null ? null : String(errorCode),
      [attribute.error]: error,
    }),
    error,
  }
}

function nameAttributeOf(method: string): string | null {
  if (method === 'tools/call') return attribute.toolName
  if (method === 'prompts/get') return attribute.promptName
  return method.startsWith('resources/') ? attribute.resourceUri : null
}

/**
 * The error type: `tool_error` for a failed tool, else the code of the JSON-RPC error, else the reason of the outcome.
 */
function errorOf({ toolFailed, errorCode }: McpRequest, { verdict, reason }: Outcome): string | null {
  if (errorCode !== null) return String(errorCode)
  if (verdict === 'error') return reason
  return toolFailed ? 'tool_error' : null
}

const shownId = (exchange: Exchange, id: RpcId): string =>
  recordedText(exchange, typeof id === 'string' ? id : rpcKey(id))
    .slice(0, longestId)
    .toWellFormed()
