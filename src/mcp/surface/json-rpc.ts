/** JSON-RPC 2.0 as MCP uses it: one message a body, ids that are never null, parameters that are an object. */
import { type RpcId, rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Json } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'

export interface RpcRequest {
  readonly kind: 'request'
  readonly id: RpcId
  readonly method: string
  readonly params: Json
}

export type Message =
  | RpcRequest
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: Json }
  | { readonly kind: 'error'; readonly id: RpcId; readonly error: McpError }

const longestId = 1024
const wholeNumber = /^-?\d+(?:\.0+)?(?:[eE]\+?\d+)?$/

function isId(value: unknown): value is RpcId {
  if (typeof value === 'string') return value.length <= longestId
  if (!JSON.isRawJSON(value)) return Number.isInteger(value)
  const { rawJSON: spelt } = value
  return spelt.length <= longestId && wholeNumber.test(spelt) && Number.isFinite(Number(spelt))
}

/** Reads one parsed message. Throws an McpError, also for a batch, which neither protocol version allows. */
export function readMessage(body: unknown): Message {
  if (Array.isArray(body))
    throw new McpError(rpcCodes.invalidRequest, 'Send one JSON-RPC message: batches are not supported')
  if (!isJson(body) || body.jsonrpc !== '2.0')
    throw new McpError(rpcCodes.invalidRequest, 'This is not a JSON-RPC 2.0 message')
  const { id, method, params = {}, result, error } = body
  if (typeof method === 'string') {
    if (!isJson(params)) throw new McpError(rpcCodes.invalidParams, 'params must be an object')
    if (id === undefined) return { kind: 'notification', method, params }
    if (!isId(id)) throw new McpError(rpcCodes.invalidRequest, 'id must be a string or a whole number')
    return { kind: 'request', id, method, params }
  }
  if (!isId(id))
    throw new McpError(rpcCodes.invalidRequest, 'A message needs a method, or the id of the request it answers')
  if (isJson(result)) return { kind: 'result', id, result }
  if (isJson(error) && typeof error.code === 'number' && typeof error.message === 'string') {
    return { kind: 'error', id, error: new McpError(error.code, error.message, error.data) }
  }
  throw new McpError(rpcCodes.invalidRequest, 'A response has a result or an error')
}

export const requestText = (id: RpcId, method: string, params: Json | undefined): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

export const notificationText = (method: string, params: Json | undefined): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params })

export const resultText = (id: RpcId, result: unknown): string => JSON.stringify({ jsonrpc: '2.0', id, result })

/** `id` is null when the message had no readable id. */
export const errorText = (id: RpcId | null, { code, message, data }: McpError): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id === null ? {} : { id }), error: { code, message, data } })
