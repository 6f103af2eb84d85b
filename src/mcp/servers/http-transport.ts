/**
 * Streamable HTTP as a client (Model Context Protocol 2026-07-28, 2025-11-25 and 2025-06-18, Transports), by fetch. The
 * official transport buffers whatever a server sends, follows redirects, and starts more slowly.
 *
 * 1. Each message is a POST. The answer of a request is JSON, or a stream in which other messages precede it.
 * 2. A stream that ends before the answer is resumed after its last event, if its events have ids.
 * 3. After `initialize`, a GET listens for messages that the server sends on its own, if it offers that.
 * 4. At the end the session is deleted.
 *
 * A request of 2026-07-28 has the first step only: its headers repeat parts of it, and closing its stream cancels it.
 *
 * Of the caller only the message and its trace are sent. Redirects are refused, because they could carry credentials
 * elsewhere.
 */
import { setImmediate } from 'node:timers/promises'
import { Failure } from '../../failure.ts'
import { SseSplitter } from '../../lib/http/sse.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import { lacksDescriptor } from '../../lib/log/host-fault.ts'
import type { Fetch } from '../../providers/provider.ts'
import type { Json } from '../connection.ts'
import { encodedHeader } from '../header-values.ts'
import { McpError } from '../mcp-error.ts'
import type { AccessTokens } from '../personal/person-token.ts'
import { inputMethods, isJson, metaKeys, requestedName } from '../protocol.ts'
import { boundedText } from './bounded-text.ts'
import { wantsSession } from './generation.ts'
import { isTooDeep } from './message-depth.ts'
import { type Receiver, SessionForgotten, SessionWanted, type Transport } from './transport.ts'

const resumptions = 5
/** How much of a stream is read before yielding to the event loop. */
const turnBytes = 64 * 1024
const farewellMilliseconds = 1000
const leastWaitMilliseconds = 1000
const longestWaitMilliseconds = 30_000
const refusalBytes = 64 * 1024
/** The limit of notifications in flight that the server has not acknowledged. */
const maxPendingNotifications = 64
const sessionIdForm = /^[\x21-\x7e]{1,1024}$/

export interface HttpTransportOptions {
  url: string
  /** The operator's headers. */
  headers: Readonly<Record<string, string>>
  tokens: AccessTokens | null
  /** How long the server may take to acknowledge a notification. */
  notifyMilliseconds: number
  /** The largest message that is read. */
  limit: number
  fetch: Fetch
  random(): number
}

/** A request that waits for its answer. */
interface Wait {
  readonly controller: AbortController
  /** All of it was read. */
  over: boolean
}

/** How far a stream was read. */
interface Reading {
  lastEventId: string | null
  retryMilliseconds: number
}

export class HttpTransport implements Transport {
  readonly closesStreams = true
  readonly #options: HttpTransportOptions
  readonly #receiver: Receiver
  readonly #closing = new AbortController()
  #sessionId: string | null = null
  #protocolVersion: string | null = null
  #telling = 0

  constructor(options: HttpTransportOptions, receiver: Receiver) {
    this.#options = options
    this.#receiver = receiver
  }

  request(message: Json, id: number, headers: Readonly<Record<string, string>>): () => void {
    const wait: Wait = { controller: new AbortController(), over: false }
    this.#exchange(message, id, wait, { ...headers, ...modernHeaders(message) }).then(
      () => {
        if (!this.#receiver.waits(id)) return
        this.#receiver.lost(id, new Failure('mcp.server_error', { message: 'The MCP server did not answer' }))
      },
      (error: unknown) => this.#receiver.lost(id, asReason(error)),
    )
    return () => {
      // Aborting a finished exchange costs as much as the rest of a request here.
      if (!wait.over) wait.controller.abort()
    }
  }

  async notify(message: Json): Promise<void> {
    if (this.#telling >= maxPendingNotifications)
      throw new Failure('mcp.server_unreachable', { message: 'It accepts no more events' })
    const late = new AbortController()
    const end = () => late.abort()
    const timer = setTimeout(end, this.#options.notifyMilliseconds)
    this.#closing.signal.addEventListener('abort', end, { once: true })
    this.#telling += 1
    try {
      const answer = await this.#send('POST', JSON.stringify(message), late.signal)
      await answer.body?.cancel()
    } catch (error) {
      throw asReason(error)
    } finally {
      this.#telling -= 1
      clearTimeout(timer)
      this.#closing.signal.removeEventListener('abort', end)
    }
  }

  ready(protocolVersion: string): void {
    this.#protocolVersion = protocolVersion
    void this.#listen()
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    if (this.#sessionId === null) return
    // A server that does not receive it expires the session by itself.
    await this.#send('DELETE', null, AbortSignal.timeout(farewellMilliseconds)).then(
      (answer) => answer.body?.cancel(),
      () => undefined,
    )
  }

  async #exchange(message: Json, id: number, wait: Wait, headers: Readonly<Record<string, string>>): Promise<void> {
    const { signal } = wait.controller
    const answer = await this.#send('POST', JSON.stringify(message), signal, null, headers)
    const isModern = headers[versionHeader] !== undefined
    if (!isModern) this.#sessionId ??= sessionIdOf(answer)
    if (!isStream(answer)) {
      const text = await boundedText(answer, this.#options.limit)
      wait.over = true
      if (text !== '') this.#receiver.message(text, id)
      return
    }
    const reading: Reading = { lastEventId: null, retryMilliseconds: leastWaitMilliseconds }
    await this.#read(answer, reading, id)
    if (isModern) return
    for (let attempt = 1; this.#receiver.waits(id) && attempt <= resumptions; attempt++) {
      if (reading.lastEventId === null) return
      await pause(reading.retryMilliseconds, signal)
      await this.#read(await this.#send('GET', null, signal, reading.lastEventId), reading, id)
    }
  }

  /** Sends one call with the headers of the session. Throws for any answer without a success status. */
  async #send(
    method: 'POST' | 'GET' | 'DELETE',
    body: string | null,
    signal: AbortSignal,
    lastEventId: string | null = null,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { url, tokens, fetch } = this.#options
    const call = (token: string | null) =>
      fetch(url, {
        method,
        headers: { ...this.#headers(body !== null, token, lastEventId), ...more },
        body,
        signal,
        redirect: 'manual',
        timeout: false,
      })
    let token = tokens === null ? null : await tokens.token()
    let answer = await call(token)
    if (answer.status === 401 && tokens !== null) {
      await answer.body?.cancel()
      token = await tokens.token(token)
      answer = await call(token)
    }
    if (answer.ok) return answer
    const ofCaller = tokens?.refusal?.(answer.status, answer.headers.get('www-authenticate')) ?? null
    if (ofCaller === null) throw await this.#refusal(answer, more[versionHeader] !== undefined)
    await answer.body?.cancel()
    throw ofCaller
  }

  #headers(hasBody: boolean, token: string | null, lastEventId: string | null): Record<string, string> {
    const operator = Object.entries(this.#options.headers).map(([name, value]) => [name.toLowerCase(), value])
    return {
      ...Object.fromEntries(operator),
      accept: hasBody ? 'application/json, text/event-stream' : 'text/event-stream',
      'accept-encoding': 'identity',
      ...(hasBody && { 'content-type': 'application/json' }),
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(this.#sessionId !== null && { 'mcp-session-id': this.#sessionId }),
      ...(this.#protocolVersion !== null && { 'mcp-protocol-version': this.#protocolVersion }),
      ...(lastEventId !== null && { 'last-event-id': lastEventId }),
    }
  }

  async #refusal(answer: Response, isModern: boolean): Promise<Error> {
    const { status } = answer
    if (!isModern && status === 404 && this.#sessionId !== null) {
      await answer.body?.cancel()
      return new SessionForgotten()
    }
    const text = await boundedText(answer, refusalBytes).catch(() => '')
    const error = errorOf(text)
    if (isModern && wantsSession(status, error)) return new SessionWanted()
    if (error !== null) return error
    const unreachable = status === 429 || status >= 500
    return new Failure(unreachable ? 'mcp.server_unreachable' : 'mcp.server_error', {
      message:
        status >= 300 && status < 400
          ? 'The MCP server answered with a redirect, which is not followed'
          : `The MCP server answered ${status}`,
    })
  }

  async #read(answer: Response, reading: Reading, during: number | null): Promise<void> {
    if (answer.body === null) return
    const splitter = new SseSplitter(this.#options.limit)
    let read = 0
    for await (const chunk of answer.body) {
      read += chunk.length
      if (read > turnBytes) {
        // A server that never pauses must not block the process.
        read = 0
        await setImmediate()
      }
      for (const frame of splitter.push(chunk)) {
        if (frame.asides === true) noteFields(frame.bytes, reading)
        if (frame.data !== null && frame.data !== '') this.#receiver.message(frame.data, during)
      }
    }
  }

  /** Listens until the connection is closed, or the server says that it has no such stream. */
  async #listen(): Promise<void> {
    const { signal } = this.#closing
    const reading: Reading = { lastEventId: null, retryMilliseconds: leastWaitMilliseconds }
    for (let attempt = 0; !signal.aborted; attempt++) {
      const began = performance.now()
      const listening = new AbortController()
      const stop = () => listening.abort()
      signal.addEventListener('abort', stop, { once: true })
      const unwatch = this.#options.tokens?.watch?.(stop)
      try {
        const answer = await this.#send('GET', null, listening.signal, reading.lastEventId)
        if (!isStream(answer)) return await answer.body?.cancel()
        await this.#read(answer, reading, null)
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof SessionForgotten) {
          return this.#receiver.broken(new Failure('mcp.server_unreachable', { cause: error }))
        }
        if (error instanceof McpError || (error instanceof Failure && error.code === 'mcp.server_error')) return
        if (error instanceof RangeError)
          return this.#receiver.broken(new Failure('mcp.result_too_large', { cause: error }))
      } finally {
        signal.removeEventListener('abort', stop)
        unwatch?.()
      }
      if (performance.now() - began > longestWaitMilliseconds) attempt = 0
      const longest = Math.min(longestWaitMilliseconds, reading.retryMilliseconds * 2 ** Math.min(attempt, 10))
      // The end of the session interrupts it, which the loop notices.
      await pause(longest * (0.5 + this.#options.random() / 2), signal).catch(() => undefined)
    }
  }
}

const isStream = (answer: Response): boolean =>
  answer.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true

const versionHeader = 'mcp-protocol-version'

/** The headers that repeat parts of a message of 2026-07-28 (Request Metadata); none of an older one. */
function modernHeaders({ method, params }: Json): Record<string, string> {
  const meta = isJson(params) && isJson(params._meta) ? params._meta : {}
  const version = meta[metaKeys.version]
  if (typeof version !== 'string' || typeof method !== 'string' || !isJson(params)) return {}
  const name = requestedName(method, params)
  const isNamed = inputMethods.has(method) && typeof name === 'string'
  return { [versionHeader]: version, 'mcp-method': method, ...(isNamed && { 'mcp-name': encodedHeader(name) }) }
}

function sessionIdOf(answer: Response): string | null {
  const id = answer.headers.get('mcp-session-id')
  return id !== null && sessionIdForm.test(id) ? id : null
}

/** The error of a JSON-RPC body; null for any other text. */
function errorOf(text: string): McpError | null {
  if (isTooDeep(text)) return null
  try {
    const body: unknown = parseExactly(text)
    const error = isJson(body) ? body.error : null
    if (!isJson(error) || typeof error.code !== 'number' || typeof error.message !== 'string') return null
    return new McpError(error.code, error.message, error.data)
  } catch {
    // An error page of a proxy; its status is enough.
    return null
  }
}

/** WHATWG HTML section 9.2.6: the last event id, and the reconnection time. */
function noteFields(frame: Uint8Array, reading: Reading): void {
  for (const line of new TextDecoder().decode(frame).split(/\r\n|\n|\r/)) {
    const [, field, value = ''] = /^(id|retry): ?([\x20-\x7e]{0,1024})$/.exec(line) ?? []
    if (field === 'id') reading.lastEventId = value === '' ? null : value
    if (field === 'retry' && /^\d{1,8}$/.test(value)) {
      reading.retryMilliseconds = Math.min(Number(value), longestWaitMilliseconds)
    }
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const end = () => reject(signal.reason)
  const timer = setTimeout(resolve, milliseconds)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  })
}

/** The reason of an ended exchange for its callers. */
function asReason(error: unknown): Error {
  if (error instanceof Failure || error instanceof McpError) return error
  if (error instanceof SessionForgotten || error instanceof SessionWanted) return error
  if (error instanceof RangeError) return new Failure('mcp.result_too_large', { cause: error })
  if (error instanceof SyntaxError) return new Failure('mcp.server_error', { cause: error })
  return new Failure(lacksDescriptor(error) ? 'file_descriptors_exhausted' : 'mcp.server_unreachable', { cause: error })
}
