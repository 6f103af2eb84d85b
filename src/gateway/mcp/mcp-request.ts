/** What an exchange on the MCP surface is about. */
import type { RpcId } from '../../lib/json/json-rpc.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import type { RunningCall } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'

export interface McpRequest {
  readonly method: string
  readonly params: Json
  /** Of the caller's request; null where a server asks. */
  readonly id: RpcId | null
  /** Null until `initialize` has made one. */
  session: McpSession | null
  /** Null where a server asks. */
  readonly call: RunningCall | null
  /** The server that it concerns; null where it concerns none, or all. */
  server: McpServerRecord | null
  /** What is called, as callers know it; null where nothing is. */
  name: string | null
  /** Whether the server was asked. */
  sent: boolean
  /** Bytes of the parameters. */
  requestBytes: number
  /** Bytes of the result; null where there was none. */
  resultBytes: number | null
  /** The tool ran and said that it failed. */
  toolFailed: boolean
  /** The code of the JSON-RPC error that the server, or the surface itself, answered with; null where there was none. */
  errorCode: number | null
  /** The call to the server, where the exchange is recorded as a trace; null otherwise, and until it is made. */
  calling: McpCalling | null
}

/** Monotonic times; it ends with the exchange where it has no end of its own. */
export interface McpCalling {
  readonly spanId: string
  /** What is called, as the server knows it. */
  readonly name: string
  readonly startedMonotonic: number
  endedMonotonic: number | null
}
