/** Answers to callers of MCP 2026-07-28: what results, errors and their HTTP statuses are like in that version. */
import { rpcCodes } from '../../../lib/json/json-rpc.ts'
import type { Json } from '../../../mcp/connection.ts'
import { inputRequests, isInputRequired } from '../../../mcp/input-required.ts'
import { McpError } from '../../../mcp/mcp-error.ts'
import { inputMethods, mcpCodes, metaKeys, supportedVersions } from '../../../mcp/protocol.ts'
import { version } from '../../../version.ts'
import type { McpRequest } from '../mcp-request.ts'

/** How long a caller may keep a list. A call of what is gone meanwhile is refused, and a subscription tells changes. */
const listMilliseconds = 30_000
const discoveryMilliseconds = 3_600_000

/** What the gateway offers, in both generations. */
export const serverInfo = { name: 'gatehouse', title: 'Gatehouse', version }
export const offeredCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
  completions: {},
}

/** Discovery, DiscoverResult: the same for every caller. */
export const discovery = (): Json => ({
  supportedVersions,
  capabilities: offeredCapabilities,
  ...complete({ ttlMs: discoveryMilliseconds, cacheScope: 'public' }),
})

/** Caching: lists and resources depend on the token, so nobody may share them. */
export function modernResult(method: string, result: Json): Json {
  if (isInputRequired(result)) return result
  if (method.endsWith('/list')) return { ...result, ...complete({ ttlMs: listMilliseconds, cacheScope: 'private' }) }
  if (method !== 'resources/read') return { ...result, resultType: 'complete' }
  const { ttlMs: told } = result
  const ttlMs = typeof told === 'number' && told >= 0 ? told : 0
  return { ...result, resultType: 'complete', ttlMs, cacheScope: 'private' }
}

const complete = (hints: Json): Json => ({
  resultType: 'complete',
  ...hints,
  _meta: { [metaKeys.serverInfo]: serverInfo },
})

/** What the server asks of the caller, checked against what the caller declared. Throws an McpError. */
export function inputNeeded({ method, session }: McpRequest, result: Json): Json {
  const { requestState: state, ...rest } = result
  if (!inputMethods.has(method))
    throw new McpError(rpcCodes.internalError, `The MCP server may not ask for input during ${method}`)
  const requests = inputRequests(rest, session?.capabilities ?? {})
  if (requests.size === 0 && typeof state !== 'string')
    throw new McpError(rpcCodes.internalError, 'The MCP server asks for input without saying which')
  return { ...rest, ...(requests.size > 0 && { inputRequests: Object.fromEntries(requests) }) }
}

/** Error Codes: codes of earlier versions are not sent, and those about the request between gateway and server neither. */
export function modernError({ code, message, data }: McpError): McpError {
  if (code === mcpCodes.legacyResourceNotFound) return new McpError(rpcCodes.invalidParams, message, data)
  const isOther = [mcpCodes.legacyUrlElicitation, mcpCodes.headerMismatch, mcpCodes.unsupportedVersion].some(
    (other) => other === code,
  )
  return isOther ? new McpError(rpcCodes.internalError, message, data) : new McpError(code, message, data)
}

/** Streamable HTTP, Protocol Version Header and Server Validation; Schema, MissingRequiredClientCapabilityError. */
export function modernErrorStatus({ code }: McpError): number {
  if (code === mcpCodes.missingCapability || code === mcpCodes.headerMismatch) return 400
  return code === rpcCodes.methodNotFound ? 404 : 200
}
