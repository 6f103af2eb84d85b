/** The other workers of a gateway, as one of them asks them about MCP sessions. */

/** What is asked of another worker: a request of a caller, its body read. */
export interface PassedRequest {
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | null
  readonly signal: AbortSignal
}

/** The other workers of this gateway, as one of them sees them. */
export interface McpNeighbours {
  /** What the ids of this worker's sessions begin with. */
  readonly sessionPrefix: string
  /** How to ask the worker that has this session; null where that is this one, or none that runs. */
  ownerOf(sessionId: string): ((request: PassedRequest) => Promise<Response>) | null
}

/** A gateway of one process. */
export const noNeighbours: McpNeighbours = { sessionPrefix: '', ownerOf: () => null }
