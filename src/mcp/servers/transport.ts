/** What carries messages between a gateway and one MCP server, by HTTP or through a child's pipes. */
import type { Failure } from '../../failure.ts'
import type { Json, McpTrace } from '../connection.ts'

/** Whom a transport hands what it reads. */
export interface Receiver {
  /**
   * One message as it was written. `during`: the request on whose stream it came, null where it came beside all; absent
   * where the transport cannot tell. Throws a `SyntaxError` where it is no JSON.
   */
  message(text: string, during?: number | null): void
  /** No answer to this request will come any more; nothing where it has one. */
  lost(id: number, reason: Error): void
  /** Whether the request still waits for its answer. */
  waits(id: number): boolean
  /** Nothing will come any more. */
  broken(reason: Failure): void
}

export interface Transport {
  /** Sends a request; what becomes of it is told to the receiver. Gives what ends the wait for its answer. */
  request(message: Json, id: number, trace?: McpTrace): () => void
  /** Sends what has no answer. Rejects with a Failure. */
  tell(message: Json): Promise<void>
  /** The server has answered `initialize` and the connection serves from now on. */
  ready(protocolVersion: string): void
  close(): Promise<void>
}

/** The server has forgotten the session: a request that it did not take may be sent again in a new one. */
export class SessionForgotten extends Error {}
