/**
 * What a server needs of its caller before it can answer (2026-07-28, Multi Round-Trip Requests), and the same of
 * 2025-11-25, whose servers refuse a request until the caller has opened an address.
 */
import { rpcCodes } from '../lib/json/json-rpc.ts'
import type { Json } from './connection.ts'
import { McpError } from './mcp-error.ts'
import { callerMethods, isJson, mcpCodes, undeclaredPart } from './protocol.ts'

const mostRequests = 64

export const isInputRequired = ({ resultType }: Json): boolean => resultType === 'input_required'

/** What a server asks of its caller, by its keys. Throws an McpError for what the caller did not declare or cannot be. */
export function inputRequests({ inputRequests: asked = {} }: Json, capabilities: Json): Map<string, Json> {
  const requests = isJson(asked) ? Object.entries(asked) : []
  if (requests.length > mostRequests) throw new McpError(rpcCodes.internalError, 'The server asks too much at once')
  return new Map(
    requests.map(([key, request]) => {
      if (!isJson(request) || typeof request.method !== 'string') throw unusable()
      const { method, params = {} } = request
      const capability = callerMethods.get(method)
      if (capability === undefined || !isJson(params)) throw unusable()
      if (capabilities[capability] === undefined || undeclaredPart(method, params, capabilities) !== null) {
        const needed = { [capability]: neededOf(method, params) }
        const message = `The call needs a caller that can do ${method}`
        throw new McpError(mcpCodes.missingCapability, message, { requiredCapabilities: needed })
      }
      return [key, { method, params }]
    }),
  )
}

const unusable = () => new McpError(rpcCodes.internalError, 'The server asks its caller something that is not in MCP')

function neededOf(method: string, { mode, tools, toolChoice }: Json): Json {
  if (method === 'elicitation/create') return mode === 'url' ? { url: {} } : { form: {} }
  return method === 'sampling/createMessage' && (tools ?? toolChoice) !== undefined ? { tools: {} } : {}
}

/** The addresses that a server of 2025-11-25 wants opened, as its result; null for any other error. */
export function requestedUrls({ code, data }: McpError, capabilities: Json): Json | null {
  if (code !== mcpCodes.legacyUrlElicitation || !isJson(data) || !Array.isArray(data.elicitations)) return null
  const asked = data.elicitations.slice(0, mostRequests).map((elicitation: unknown, index) => {
    const { elicitationId: _, ...params } = isJson(elicitation) ? elicitation : {}
    return [`url-${index + 1}`, { method: 'elicitation/create', params: { ...params, mode: 'url' } }] as const
  })
  const result = { resultType: 'input_required', inputRequests: Object.fromEntries(asked) }
  inputRequests(result, capabilities)
  return result
}
