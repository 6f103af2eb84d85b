/**
 * What spans of an exchange on the MCP surface say: the caller's request, and under it the call to the server, by the MCP
 * conventions of OpenTelemetry. A session is named by its label, since its id opens it.
 */
import { type RpcId, rpcKey } from '../../lib/json/json-rpc.ts'
import { attribute, attributes, hostAttributes, type Span } from '../../telemetry/span.ts'
import type { Exchange, Outcome } from '../exchange.ts'
import type { McpRequest } from '../mcp/mcp-request.ts'
import { recordedName } from '../mcp/recorded-request.ts'
import { recordedText } from './recorded-text.ts'

type Told = Pick<Span, 'name' | 'attributes' | 'error'>

const longestId = 256

/** What the span of the exchange itself says of its request. */
export function toldOfRequest(exchange: Exchange, mcp: McpRequest, outcome: Outcome): Told {
  const { id, session } = mcp
  const told = sharedOf(exchange, mcp, recordedName(exchange, mcp), outcome)
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

/** The span of the call to the server; none where there was no call. */
export function callingSpans(exchange: Exchange, mcp: McpRequest, parent: Span, outcome: Outcome): Span[] {
  const { calling, server } = mcp
  if (calling === null) return []
  const told = sharedOf(exchange, mcp, recordedText(exchange, calling.name), outcome)
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

/** What both say: the method and, as the one who is asked knows it, what is called. */
function sharedOf(exchange: Exchange, mcp: McpRequest, name: string | null, outcome: Outcome): Told {
  const { errorCode } = mcp
  const method = recordedText(exchange, mcp.method)
  const named = name === null ? null : nameAttributeOf(method)
  const error = errorOf(mcp, outcome)
  return {
    // Addresses of resources are too many for names of spans.
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

/** The convention's word for a tool that failed, the code of an error that was answered, or our own reason. */
function errorOf({ toolFailed, errorCode }: McpRequest, { verdict, reason }: Outcome): string | null {
  if (errorCode !== null) return String(errorCode)
  if (verdict === 'error') return reason
  return toolFailed ? 'tool_error' : null
}

const shownId = (exchange: Exchange, id: RpcId): string =>
  recordedText(exchange, typeof id === 'string' ? id : rpcKey(id))
    .slice(0, longestId)
    .toWellFormed()
