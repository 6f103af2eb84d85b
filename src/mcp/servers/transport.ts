/** Carries messages between a gateway and one MCP server, by HTTP or through a child's pipes. */
import type { Failure } from '../../failure.ts'
import type { Json } from '../connection.ts'

/** Receives what a transport reads. */
export interface Receiver {
  /**
   * One message as it was written. `during`: the request on whose stream it came, null for none; absent when the
   * transport cannot tell. Throws a `SyntaxError` for malformed JSON.
   */
  message(text: string, during?: number | null): void
  /** No answer to this request will come any more; ignored if it has one. */
  lost(id: number, reason: Error): void
  /** Whether the request still waits for its answer. */
  waits(id: number): boolean
  /** The connection broke. */
  broken(reason: Failure): void
}

export interface Transport {
  /** Whether each request has a stream of its own, which closes when nobody waits for it. */
  readonly closesStreams: boolean
  /**
   * Sends a request; the receiver gets its result. Returns a function that stops waiting for the answer. `headers`: those
   * of the trace and of arguments, where the transport has headers.
   */
  request(message: Json, id: number, headers: Readonly<Record<string, string>>): () => void
  /** Sends a message without an answer. Rejects with a Failure. */
  notify(message: Json): Promise<void>
  /** The server has answered `initialize`, and the connection is in use from now on. */
  ready(protocolVersion: string): void
  close(): Promise<void>
}

/** The server has forgotten the session: a request that it refused may be sent again in a new session. */
export class SessionForgotten extends Error {}

/** The server refused a request because it wants a session: it no longer is of 2026-07-28. The request had no effect. */
export class SessionWanted extends Error {}
