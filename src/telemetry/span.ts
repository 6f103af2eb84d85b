/**
 * Spans of an exchange: itself, and under it each call to a provider or MCP server. Names follow the GenAI and MCP
 * semantic conventions of OpenTelemetry, which are still in development, so what is used of them stands here. Never
 * in a span: texts, secrets.
 */

import { families, isFamily } from '../languages/families.ts'

type AttributeValue = string | number | boolean | string[]

/** One span, as an exporter takes it. Times are milliseconds since the epoch. */
export interface Span {
  name: string
  kind: 'server' | 'client'
  traceId: string
  spanId: string
  parentSpanId: string | null
  /** The trace's `tracestate`. */
  state: string | null
  startedAt: number
  endedAt: number
  attributes: Record<string, AttributeValue>
  /** What went wrong, in a stable word; null where nothing did. */
  error: string | null
}

/** The operation of a family of routes, in the conventions' well-known values if there is one. */
export const operationOf = (family: string): string =>
  (isFamily(family) ? families[family].operation : undefined) ?? family

/** Attributes by the conventions of GenAI and MCP, or by the general ones; what has no name there begins with ours. */
export const attribute = {
  operation: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  conversation: 'gen_ai.conversation.id',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  toolName: 'gen_ai.tool.name',
  promptName: 'gen_ai.prompt.name',
  mcpMethod: 'mcp.method.name',
  mcpSession: 'mcp.session.id',
  mcpVersion: 'mcp.protocol.version',
  resourceUri: 'mcp.resource.uri',
  rpcId: 'jsonrpc.request.id',
  rpcStatus: 'rpc.response.status_code',
  transport: 'network.transport',
  method: 'http.request.method',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  route: 'http.route',
  status: 'http.response.status_code',
  error: 'error.type',
  attempt: 'http.request.resend_count',
  exchangeId: 'gatehouse.exchange_id',
  requestId: 'gatehouse.request_id',
  verdict: 'gatehouse.verdict',
  reason: 'gatehouse.reason_code',
  provider: 'gatehouse.provider',
  tokenId: 'gatehouse.token_id',
  teamId: 'gatehouse.team_id',
  stream: 'gatehouse.stream',
  firstToken: 'gatehouse.first_token_ms',
  estimated: 'gatehouse.usage_estimated',
} as const

/** The host and port of a URL, and nothing else of it; neither where it is none. */
export function hostAttributes(address: string | null | undefined): Span['attributes'] {
  const url = URL.parse(address ?? '')
  if (url === null || url.hostname === '') return {}
  const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port)
  return { [attribute.serverAddress]: url.hostname.replace(/^\[|\]$/g, ''), [attribute.serverPort]: port }
}

/** The span without null attributes. */
export const attributes = (given: Readonly<Record<string, AttributeValue | null | undefined>>): Span['attributes'] => {
  const kept: Span['attributes'] = {}
  for (const [name, value] of Object.entries(given)) if (value !== null && value !== undefined) kept[name] = value
  return kept
}
