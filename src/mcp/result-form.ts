/** What a result of a server must have before anybody takes it for an answer (Schema of each version). */
import { Failure } from '../failure.ts'
import type { Json, McpServerRecord } from './connection.ts'
import { isInputRequired } from './input-required.ts'
import { isJson } from './protocol.ts'

/** The required member of the result of each method. */
const members: ReadonlyMap<string, readonly [name: string, isOf: (value: unknown) => boolean]> = new Map([
  ['tools/call', ['content', Array.isArray]],
  ['prompts/get', ['messages', Array.isArray]],
  ['resources/read', ['contents', Array.isArray]],
  ['completion/complete', ['completion', isJson]],
])

/** Throws `mcp.server_error` for a result without the member that its method requires. */
export function requireResult({ name }: Pick<McpServerRecord, 'name'>, method: string, result: Json): void {
  const [member, isOf] = members.get(method) ?? []
  if (member === undefined || isOf?.(result[member]) === true || isInputRequired(result)) return
  throw new Failure('mcp.server_error', {
    message: `The MCP server ${name} answered ${method} with a result without ${member}`,
  })
}

/**
 * Throws `mcp.server_error` for a type of result that nobody knows (2026-07-28, Base Protocol, Result Type). A result
 * without one is complete.
 */
export function requireKnownType({ name }: Pick<McpServerRecord, 'name'>, method: string, result: Json): void {
  if (result.resultType === undefined || result.resultType === 'complete' || isInputRequired(result)) return
  throw new Failure('mcp.server_error', {
    message: `The MCP server ${name} answered ${method} with an unknown resultType`,
  })
}
