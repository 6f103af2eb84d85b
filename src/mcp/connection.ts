/**
 * The interface between the published MCP endpoint (`src/mcp/surface`), which callers use, and the MCP servers behind
 * it (`src/mcp/servers`): a connection to one server for one caller's session, for requests and notifications both
 * ways. The caller's token never passes through it.
 */

import type { CallLimits } from './call-limits.ts'

/** A server of the catalog without its credentials. */
export interface McpServerRecord {
  readonly id: string
  /** The prefix of everything it offers: `<name>__<tool>`. It holds no two underscores in a row. */
  readonly name: string
  readonly version: number
  /** Milliseconds a call may take without progress. */
  readonly timeoutMilliseconds: number
  /**
   * `first_use`: an unlisted name has no definition to hold. `required`: nothing is offered before a person approves
   * it.
   */
  readonly approval: 'first_use' | 'required'
  /** The scheme, host and port of its URL; null for a local command. */
  readonly origin?: string | null
  /** All its calls are refused, and none of its offers is listed. */
  readonly quarantined?: boolean
  /** Whether each of its tools is listed, or they are found by a search. */
  readonly tools?: 'listed' | 'searched'
  /** Prices and limits of calls; null for none. */
  readonly callLimits?: CallLimits | null
}

/** The MCP servers that this gateway may use. */
export interface McpServers {
  /** In creation order, without disabled ones. */
  list(): readonly McpServerRecord[]
  /**
   * Opens a connection for one caller's session. Rejects with a Failure when the server is unreachable, its circuit is
   * open, or this installation does not allow local commands.
   */
  connect(record: McpServerRecord, caller: McpCaller): Promise<McpConnection>
  /** Whether the server is known to have no sessions; false also before anyone has asked it. */
  isModern(record: McpServerRecord): boolean
  /**
   * Returns the offers that may be shown: those with an approved definition. Others are reported to the control plane
   * once, which protects against definitions that change after approval.
   */
  approved<Offer extends { name: string }>(record: McpServerRecord, kind: OfferKind, offers: readonly Offer[]): Offer[]
  /** Calls the listener when a record was created, changed, approved or removed. Returns a function that stops it. */
  onChange(listener: () => void): () => void
  /** The number of server messages since the start that answered nothing or broke the protocol. */
  readonly unsolicited: number
}

export type OfferKind = 'tool' | 'prompt' | 'resource' | 'resource_template'

export type Json = Record<string, unknown>

/** The caller of a session, as a server reaches it. */
export interface McpCaller {
  /** The version that the caller speaks, and the capabilities that the gateway passes on. */
  readonly protocolVersion: string
  readonly capabilities: Json
  /** The credential that was shown last: its SHA-256, and itself where it can be a person's own. It reaches no server. */
  credential(): { readonly hash: string; readonly secret?: string }
  /**
   * `sampling/createMessage`, `elicitation/create`, `roots/list`. Rejects with an McpError when the caller cannot.
   * `related`: that of the call for which the server asks; absent when it is unknown.
   */
  request(method: string, params: Json | undefined, options: { signal: AbortSignal; related?: unknown }): Promise<Json>
  /** `notifications/tools/list_changed`, `notifications/message`, `notifications/resources/updated`. */
  notify(method: string, params: Json | undefined, related?: unknown): void
}

/** The trace of a request as HTTP headers state it (W3C Trace Context). */
export interface McpTrace {
  readonly traceparent: string
  readonly tracestate?: string
}

export interface McpCallOptions {
  readonly signal: AbortSignal
  readonly onProgress?: (params: Json) => void
  readonly trace?: McpTrace
  /** Given back with what the server asks or says while it works on this. */
  readonly related?: unknown
  /** Headers that name arguments of a tool (`Mcp-Param-…`); only a modern server gets them. */
  readonly headers?: Readonly<Record<string, string>>
  /** The least urgent log level that the caller wants; null for no log. A modern server is told with the request. */
  readonly logLevel?: string | null
}

export interface McpConnection {
  readonly server: McpServerRecord
  /** Whether the server has no sessions: it asks the caller by its results (`resultType: input_required`). */
  readonly modern: boolean
  /** The server's answer to `initialize` or `server/discover`. */
  readonly capabilities: Json
  readonly instructions: string | null
  /**
   * Sends a request and returns the result as the server wrote it, with unknown members. Rejects with an `McpError`
   * (the server's code, message, data), or with a Failure when the connection broke, a deadline passed or a result is
   * too large.
   */
  request(method: string, params: Json | undefined, options: McpCallOptions): Promise<Json>
  notify(method: string, params: Json | undefined): Promise<void>
  close(): Promise<void>
}
