/**
 * Reads what a request of MCP 2026-07-28 says about itself: version, capabilities and log level in `_meta`, and the
 * headers that repeat parts of the body (Streamable HTTP, Request Metadata). A request that names no such version is an
 * older one, which belongs to a session.
 */
import { type RpcId, rpcCodes } from '../../../lib/json/json-rpc.ts'
import type { Json } from '../../../mcp/connection.ts'
import { decodedHeader, type MarkedArgument, mismatchedHeader } from '../../../mcp/header-values.ts'
import { McpError } from '../../../mcp/mcp-error.ts'
import {
  isJson,
  logLevels,
  mcpCodes,
  metaKeys,
  modernVersion,
  requestedName,
  supportedVersions,
} from '../../../mcp/protocol.ts'
import { callTool } from '../../../mcp/search/search-offers.ts'
import type { RpcRequest } from '../../../mcp/surface/json-rpc.ts'
import { HttpRefusal } from '../http.ts'

export interface ModernRequest {
  /** The request without what `_meta` says about the protocol. */
  readonly message: RpcRequest
  /** The request as it came. */
  readonly original: RpcRequest
  readonly capabilities: Json
  readonly logLevel: string | null
}

/** Whether the headers are those of a message without a session. */
export const isModernHeader = ({ headers }: Request): boolean => headers.get('mcp-protocol-version') === modernVersion

/** A refusal with the id of the request. */
const refusal = (id: RpcId, code: number, message: string, data?: unknown, status = 400): HttpRefusal =>
  new HttpRefusal(status, message, code, { id, data })

/** Streamable HTTP, Protocol Version Header: 404 tells an unknown method from an unknown address by the body. */
export const unknownMethod = (id: RpcId): HttpRefusal =>
  refusal(id, rpcCodes.methodNotFound, 'This method is not supported', undefined, 404)

/** Null for a request of an older version. Throws an HttpRefusal when its parts do not fit. */
export function readModernRequest(request: Request, message: RpcRequest): ModernRequest | null {
  const { id, method, params } = message
  const meta = isJson(params._meta) ? params._meta : {}
  const version = meta[metaKeys.version]
  const header = request.headers.get('mcp-protocol-version')
  if (header !== modernVersion && version === undefined) return null
  if (typeof version !== 'string')
    throw refusal(id, rpcCodes.invalidParams, `params._meta needs ${metaKeys.version}, a text`)
  if (header !== version)
    throw mismatch(id, `MCP-Protocol-Version must be the version of params._meta, which is "${version}"`)
  if (version !== modernVersion) {
    const data = { supported: supportedVersions, requested: version }
    throw refusal(id, mcpCodes.unsupportedVersion, `Unsupported protocol version: use ${modernVersion}`, data)
  }
  const capabilities = meta[metaKeys.capabilities]
  if (!isJson(capabilities))
    throw refusal(id, rpcCodes.invalidParams, `params._meta needs ${metaKeys.capabilities}, an object`)
  const logLevel = meta[metaKeys.logLevel] ?? null
  if (logLevel !== null && !(typeof logLevel === 'string' && logLevels.includes(logLevel)))
    throw refusal(id, rpcCodes.invalidParams, `${metaKeys.logLevel} must be one of ${logLevels.join(', ')}`)
  checkHeader(request, id, 'Mcp-Method', method)
  const name = requestedName(method, params)
  if (namedMethods.has(method) && typeof name === 'string') checkHeader(request, id, 'Mcp-Name', name)
  return { message: { ...message, params: withoutProtocol(params, meta) }, original: message, capabilities, logLevel }
}

const namedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

function mismatch(id: RpcId, message: string): HttpRefusal {
  return refusal(id, mcpCodes.headerMismatch, message)
}

function checkHeader({ headers }: Request, id: RpcId, name: string, value: string): void {
  const header = headers.get(name)
  if (header === null) throw mismatch(id, `The header ${name} is missing`)
  if (decodedHeader(header) !== value) throw mismatch(id, `The header ${name} differs from the body`)
}

/** A header of the caller that differs from its request. */
export class HeaderMismatch extends McpError {}

/**
 * Throws a HeaderMismatch where a header `Mcp-Param-…` differs from its argument (Custom Headers, Server Behavior). A
 * call by `call_tool` has no such headers, because its client knows the schema of `call_tool` only.
 */
export function checkArgumentHeaders(
  marks: readonly MarkedArgument[],
  { params }: { params: Json },
  { headers }: Request,
): void {
  if (marks.length === 0 || decodedHeader(headers.get('mcp-name') ?? '') === callTool) return
  const header = mismatchedHeader(marks, params.arguments, headers)
  if (header !== null)
    throw new HeaderMismatch(mcpCodes.headerMismatch, `The header ${header} differs from its argument`)
}

const protocolKeys: ReadonlySet<string> = new Set(Object.values(metaKeys))

/** `_meta` without the members that only concern the gateway and its caller. */
function withoutProtocol(params: Json, meta: Json): Json {
  const kept = Object.entries(meta).filter(([key]) => !protocolKeys.has(key))
  const { _meta: _, ...rest } = params
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) }
}
