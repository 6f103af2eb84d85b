/**
 * Calls that a server with sessions works on for a caller without them. Such a server asks its caller in the middle of
 * a call, but the caller must be answered first (2026-07-28, Multi Round-Trip Requests). So its request is answered by
 * what the server asked, the call at the server waits here, and the caller's next request brings the answers. The call
 * is not made again, because it may have had its effect. It ends when its caller does not return in time.
 */
import { randomBytes } from 'node:crypto'
import { Failure } from '../../failure.ts'
import { rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Json } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'
import type { RunningCall } from './running-call.ts'

const most = 64
/** How long a call waits for its caller to return. */
const longestMilliseconds = 10 * 60_000

interface Question {
  readonly request: { readonly method: string; readonly params: Json }
  resolve(answer: Json): void
}

export const heldNoLonger = (): Failure =>
  new Failure('invalid_parameter', {
    param: 'requestState',
    message: 'The call no longer waits: send the request without requestState',
  })

export class HeldCall {
  readonly id = randomBytes(16).toString('base64url')
  /** The request of the caller that waits for it now; null while the caller is asked. */
  call: RunningCall | null = null
  /** Called when its caller did not return in time. */
  onLate: () => void = () => undefined
  readonly #ended = new AbortController()
  readonly #questions = new Map<string, Question>()
  #result: Promise<Json> | null = null
  #asked = Promise.withResolvers<void>()
  #count = 0
  #timer: Timer | null = null

  /** Begins the call. */
  start(send: (signal: AbortSignal) => Promise<Json>): void {
    this.#result = send(this.#ended.signal)
    // Whoever waits for it is told.
    this.#result.catch(() => undefined)
  }

  /** Asks the caller; resolves with its answer. Rejects with an McpError when the server no longer wants it. */
  ask(method: string, { _meta: _, ...params }: Json, signal: AbortSignal): Promise<Json> {
    this.#count += 1
    const key = `input-${this.#count}`
    return new Promise<Json>((resolve, reject) => {
      const takeBack = () => {
        this.#questions.delete(key)
        this.#askAnew()
        reject(new McpError(rpcCodes.internalError, 'The request to the caller was cancelled'))
      }
      const given = AbortSignal.any([signal, this.#ended.signal])
      if (given.aborted) return takeBack()
      given.addEventListener('abort', takeBack, { once: true })
      this.#questions.set(key, {
        request: { method, params },
        resolve(answer) {
          given.removeEventListener('abort', takeBack)
          resolve(answer)
        },
      })
      this.#asked.resolve()
    })
  }

  /** Takes the caller's answers; what nothing asked for is ignored. */
  answer(answers: Json): void {
    for (const [key, { resolve }] of this.#questions) {
      const answer = answers[key]
      if (!isJson(answer)) continue
      this.#questions.delete(key)
      resolve(answer)
    }
    this.#askAnew()
  }

  /** The result of the call, or what the server asks of the caller first. An abort ends the call. */
  async next(call: RunningCall, signal: AbortSignal): Promise<Json> {
    if (this.#result === null) throw new Error('The call was not started')
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.call = call
    const leave = () => this.end(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    try {
      const result = await Promise.race([this.#result, this.#asked.promise])
      if (result !== undefined) return result
    } finally {
      this.call = null
      signal.removeEventListener('abort', leave)
    }
    const late = () => {
      this.end(new Failure('mcp.server_timeout', { message: 'The caller did not return to its call in time' }))
      this.onLate()
    }
    this.#timer = setTimeout(late, longestMilliseconds)
    this.#timer.unref()
    const requests = [...this.#questions].map(([key, { request }]) => [key, request])
    return { resultType: 'input_required', inputRequests: Object.fromEntries(requests), requestState: this.id }
  }

  end(reason: unknown): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#ended.abort(reason)
  }

  #askAnew(): void {
    if (this.#questions.size === 0) this.#asked = Promise.withResolvers<void>()
  }
}

export class HeldCalls {
  readonly #held = new Map<string, HeldCall>()
  #closed = false

  get size(): number {
    return this.#held.size
  }

  /** Throws an McpError when too many wait. */
  begin(): HeldCall {
    if (this.#held.size >= most) throw new McpError(rpcCodes.internalError, 'Too many calls wait for the caller')
    return new HeldCall()
  }

  has(id: string): boolean {
    return this.#held.has(id)
  }

  /** The call that a caller returns for. Throws `invalid_parameter` when it waits no more. */
  find(id: string): HeldCall {
    const held = this.#held.get(id)
    if (held === undefined) throw heldNoLonger()
    this.#held.delete(id)
    return held
  }

  /** Keeps a call until its caller returns; ends it when no caller can. */
  keep(held: HeldCall): void {
    if (this.#closed) {
      held.end(new Failure('mcp.session_ended'))
      return
    }
    this.#held.set(held.id, held)
    held.onLate = () => this.#held.delete(held.id)
  }

  /** Ends what waits for its caller, now and from now on. */
  close(): void {
    this.#closed = true
    for (const held of this.#held.values()) held.end(new Failure('mcp.session_ended'))
    this.#held.clear()
  }
}
