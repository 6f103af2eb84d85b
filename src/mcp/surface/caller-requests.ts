/**
 * Requests of servers that wait for their caller's answer. Their ids and progress tokens are the session's own, because
 * two servers may choose the same.
 */
import { isNumber } from '../../lib/json/exact-json.ts'
import { type RpcId, rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Json } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'
import { notificationText, requestText } from './json-rpc.ts'

const most = 64

interface Waiting {
  readonly serverId: string
  /** The server's own progress token; absent when it asked for none. */
  readonly progressToken: unknown
  resolve(result: Json): void
  reject(error: unknown): void
}

export interface CallerRequest {
  readonly serverId: string
  readonly method: string
  readonly params: Json
  readonly signal: AbortSignal
}

export class CallerRequests {
  readonly #waiting = new Map<RpcId, Waiting>()
  #count = 0
  #closed = false

  /** Throws an McpError when too many wait, or the session has ended. */
  assertRoom(): void {
    if (this.#closed) throw new McpError(rpcCodes.internalError, 'The session has ended')
    if (this.#waiting.size >= most) throw new McpError(rpcCodes.internalError, 'Too many requests wait for the caller')
  }

  /** Sends a request by `send`; resolves with the caller's answer. An abort cancels it at the caller. */
  ask({ serverId, method, params, signal }: CallerRequest, send: (text: string) => void): Promise<Json> {
    this.assertRoom()
    this.#count += 1
    const id = `server-${this.#count}`
    const meta = isJson(params._meta) ? params._meta : {}
    const { progressToken } = meta
    const sent = progressToken === undefined ? params : { ...params, _meta: { ...meta, progressToken: id } }
    return new Promise<Json>((resolve, reject) => {
      const takeBack = () => {
        this.#take(id)
        send(notificationText('notifications/cancelled', { requestId: id }))
        reject(new McpError(rpcCodes.internalError, 'The request to the caller was cancelled'))
      }
      const settle = () => signal.removeEventListener('abort', takeBack)
      this.#waiting.set(id, {
        serverId,
        progressToken,
        resolve(result) {
          settle()
          resolve(result)
        },
        reject(error) {
          settle()
          reject(error)
        },
      })
      signal.addEventListener('abort', takeBack, { once: true })
      if (signal.aborted) takeBack()
      else send(requestText(id, method, sent))
    })
  }

  answered(id: RpcId, result: Json): void {
    this.#take(id)?.resolve(result)
  }

  refused(id: RpcId, error: McpError): void {
    this.#take(id)?.reject(error)
  }

  /**
   * Maps a caller's progress notification to the server's request; null without a request. Only its numbers pass,
   * because no policy inspects its text.
   */
  progressOf({ progressToken: id, progress, total }: Json): { serverId: string; params: Json } | null {
    const waiting = typeof id === 'string' ? this.#waiting.get(id) : undefined
    if (waiting?.progressToken === undefined || !isNumber(progress)) return null
    const figures = isNumber(total) ? { progress, total } : { progress }
    return { serverId: waiting.serverId, params: { ...figures, progressToken: waiting.progressToken } }
  }

  close(): void {
    this.#closed = true
    for (const { reject } of this.#waiting.values())
      reject(new McpError(rpcCodes.internalError, 'The session has ended'))
    this.#waiting.clear()
  }

  #take(id: RpcId): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }
}
