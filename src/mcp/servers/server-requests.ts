/**
 * Requests of a server with sessions to its caller. Each reaches the caller only if the caller declared the capability, a
 * limited number at a time, and no longer than the calls run that it belongs to.
 */
import { Failure } from '../../failure.ts'
import { isRpcId, rpcCodes, rpcKey } from '../../lib/json/json-rpc.ts'
import type { Json, McpCaller } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { callerMethods, undeclaredPart } from '../protocol.ts'

const maxAskAmount = 16

/** A request of the server that waits for the caller. */
interface ServerRequest {
  readonly ended: AbortController
  /** The running calls it belongs to; null when it belongs to none. */
  readonly during: Set<number> | null
  /** The server cancelled it and wants no answer. */
  withdrawn: boolean
}

interface Asked {
  readonly method: string
  readonly params: Json | undefined
  readonly during: Set<number> | null
  /** What the caller knows the call by. */
  readonly related: unknown
}

export interface ServerRequestOptions {
  caller: McpCaller
  idleMilliseconds: number
  totalMilliseconds: number
}

export class ServerRequests {
  readonly #options: ServerRequestOptions
  readonly #giveTime: () => void
  /** By the key of the server's id. */
  readonly #waiting = new Map<string, ServerRequest>()

  /** `giveTime` is called while the server waits for the caller, which does not count against the server. */
  constructor(options: ServerRequestOptions, giveTime: () => void) {
    this.#options = options
    this.#giveTime = giveTime
  }

  /** The members of the caller's answer, result or error; null when the server cancelled its request. */
  async answer(key: string, { method, params, during, related }: Asked): Promise<Json | null> {
    if (method === 'ping') return { result: {} }
    const { caller, idleMilliseconds, totalMilliseconds } = this.#options
    const capability = callerMethods.get(method)
    if (capability === undefined || caller.capabilities[capability] === undefined) {
      return { error: { code: rpcCodes.methodNotFound, message: 'Method not found' } }
    }
    const lacking = undeclaredPart(method, params ?? {}, caller.capabilities)
    if (lacking !== null) return { error: { code: rpcCodes.invalidParams, message: lacking } }
    if (this.#waiting.size >= maxAskAmount || this.#waiting.has(key)) {
      return { error: { code: rpcCodes.internalError, message: 'Too many requests at once' } }
    }
    const asked: ServerRequest = { ended: new AbortController(), during, withdrawn: false }
    const { ended } = asked
    this.#waiting.set(key, asked)
    const waiting = setInterval(this.#giveTime, idleMilliseconds / 2)
    const deadline = setTimeout(() => ended.abort(new Failure('mcp.server_timeout')), totalMilliseconds)
    try {
      const result = await caller.request(method, params, { signal: ended.signal, related })
      return asked.withdrawn ? null : { result }
    } catch (error) {
      if (asked.withdrawn) return null
      if (!(error instanceof McpError))
        return { error: { code: rpcCodes.internalError, message: 'The caller did not answer' } }
      return {
        error: { code: error.code, message: error.message, ...(error.data !== undefined && { data: error.data }) },
      }
    } finally {
      clearInterval(waiting)
      clearTimeout(deadline)
      this.#waiting.delete(key)
    }
  }

  /** The server wants no answer to its request any more. */
  cancelled(id: unknown): void {
    const asked = isRpcId(id) ? this.#waiting.get(rpcKey(id)) : undefined
    if (asked === undefined) return
    asked.withdrawn = true
    asked.ended.abort(new Failure('mcp.server_error', { message: 'The MCP server cancelled its request' }))
  }

  /** A call is over: requests that belonged to it alone are cancelled at the caller. */
  endOf(call: number): void {
    for (const { ended, during } of this.#waiting.values()) {
      if (during?.delete(call) === true && during.size === 0) {
        ended.abort(new Failure('mcp.server_error', { message: 'The call that this request belongs to has ended' }))
      }
    }
  }

  close(reason: Failure): void {
    for (const { ended } of this.#waiting.values()) ended.abort(reason)
    this.#waiting.clear()
  }
}
