/** The MCP details of an exchange. */
import type { RpcId } from '../../lib/json/json-rpc.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import type { RunningCall } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'

export interface McpRequest {
  readonly method: string
  params: Json
  /** The id of the caller's request; null when a server asks. */
  readonly id: RpcId | null
  /** Null until `initialize` has created one. */
  session: McpSession | null
  /** Null when a server asks. */
  readonly call: RunningCall | null
  /** The server that the request concerns; null for none or all. */
  server: McpServerRecord | null
  /** The published name of what is called; null when nothing is. */
  name: string | null
  /** What the caller brings back of an earlier round of the call; null in a first round. */
  state: RequestState | null
  /** Whether the request was sent to the server. */
  sent: boolean
  /** Bytes of the parameters. */
  requestBytes: number
  /** Bytes of the result; null without one. */
  resultBytes: number | null
  /** The tool ran and reported a failure. */
  toolFailed: boolean
  /** The code of the JSON-RPC error that the server or the gateway answered; null without one. */
  errorCode: number | null
  /** The call to the server of a traced exchange; null otherwise, and before the call. */
  calling: McpCallSpan | null
  /** The stream that the request has opened (2026-07-28, Subscriptions); null otherwise. */
  changes: ReadableStream<Uint8Array> | null
}

/** What `requestState` holds (`modern/request-state.ts`). */
export interface RequestState {
  /** The prefix of the worker that holds the call at a server with sessions; null for the state of a server without. */
  readonly holder: string | null
  /** The held call, or the state of the server; null for a server that gave none. */
  readonly text: string | null
  /** The reviewer's leave to send this round; null for none. */
  readonly grant: string | null
}

/**
 * Whether the call waits at a server with sessions: an earlier request has sent it, and it was counted and priced then.
 */
export const isHeldCall = ({ state }: Pick<McpRequest, 'state'>): boolean => state !== null && state.holder !== null

/** Monotonic times. Without an end of its own the call ends with the exchange. */
export interface McpCallSpan {
  readonly spanId: string
  /** The server's own name of what is called. */
  readonly name: string
  readonly startedMonotonic: number
  endedMonotonic: number | null
}
