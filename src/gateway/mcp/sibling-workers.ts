/** Access to the MCP sessions of the other workers of a gateway. */

/** A request that is forwarded to another worker, with its body read. */
export interface ForwardedRequest {
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | null
  readonly signal: AbortSignal
}

/** The other workers of this gateway. */
export interface SiblingWorkers {
  /** The prefix of the ids of this worker's sessions. */
  readonly sessionPrefix: string
  /** A function that calls the worker of this session; null when that is this worker or one that no longer runs. */
  ownerOf(sessionId: string): ((request: ForwardedRequest) => Promise<Response>) | null
  /**
   * A function that calls the worker that keeps the connections of this caller to servers with sessions, the same for
   * every request of the caller; null when that is this worker or one that does not run.
   */
  homeOf(caller: string): ((request: ForwardedRequest) => Promise<Response>) | null
}

/** A gateway with one worker. */
export const noSiblings: SiblingWorkers = { sessionPrefix: '', ownerOf: () => null, homeOf: () => null }
