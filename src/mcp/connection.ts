/**
 * The seam between the published MCP surface (`src/mcp/surface`, which callers reach) and the MCP servers behind it
 * (`src/mcp/servers`): a connection to one server on behalf of one caller's session. Server and caller ask and tell each
 * other through it; the caller's token never passes.
 */

/** A server of the catalog as a gateway knows it: what decisions need, no credential. */
export interface McpServerRecord {
  readonly id: string
  /** The prefix of everything it offers: `<name>__<tool>`. No two underscores in a row. */
  readonly name: string
  readonly version: number
  /** Milliseconds a call may take without progress. */
  readonly timeoutMilliseconds: number
  /** `first_use`: what it does not list has no definition to hold back. `required`: nothing is before a person approves it. */
  readonly approval: 'first_use' | 'required'
  /** Scheme, host and port at which it is reached; null for a local command. */
  readonly origin?: string | null
}

/** The MCP servers that this gateway may use. */
export interface McpServers {
  /** In the order they were made, without those that are disabled. */
  list(): readonly McpServerRecord[]
  /**
   * Opens a connection for one caller's session. Rejects with a Failure where the server cannot be reached, its circuit
   * is open, or a local command is not allowed on this installation.
   */
  connect(record: McpServerRecord, caller: McpCaller): Promise<McpConnection>
  /**
   * Of what a server offers, what may be shown: a definition that was approved as it is. What is held back is reported
   * to the control plane once (protection against definitions that change after approval).
   */
  approved<Offer extends { name: string }>(record: McpServerRecord, kind: OfferKind, offers: readonly Offer[]): Offer[]
  /** Calls the listener when a record was made, changed, approved or removed. Returns what stops it. */
  onChange(listener: () => void): () => void
  /** Messages of servers that were no answer to anything, nor anything else of the protocol, since the start. */
  readonly strays: number
}

export type OfferKind = 'tool' | 'prompt' | 'resource' | 'resource_template'

export type Json = Record<string, unknown>

/** What a server may ask of the caller, and tell it. */
export interface McpCaller {
  /** What the caller declared at `initialize`: its version, and those capabilities that reach it through the gateway. */
  readonly protocolVersion: string
  readonly capabilities: Json
  /** `sampling/createMessage`, `elicitation/create`, `roots/list`. Rejects with an McpError where the caller cannot. */
  request(method: string, params: Json | undefined, options: { signal: AbortSignal; related?: unknown }): Promise<Json>
  /** `notifications/tools/list_changed`, `notifications/message`, `notifications/resources/updated`. */
  notify(method: string, params: Json | undefined): void
}

/** What trace a request belongs to, as headers say it of one that goes by HTTP (W3C Trace Context). */
export interface McpTrace {
  readonly traceparent: string
  readonly tracestate?: string
}

export interface McpConnection {
  readonly server: McpServerRecord
  /** What the server answered to `initialize`. */
  readonly capabilities: Json
  readonly instructions: string | null
  /**
   * Sends a request and gives the result as the server wrote it, unknown members included. Rejects with an `McpError`
   * (the server's code, message, data), or a Failure where the connection broke, a deadline passed or a result is larger
   * than allowed.
   */
  request(
    method: string,
    params: Json | undefined,
    options: { signal: AbortSignal; onProgress?: (params: Json) => void; trace?: McpTrace },
  ): Promise<Json>
  notify(method: string, params: Json | undefined): Promise<void>
  close(): Promise<void>
}
