/**
 * A proxy on loopback between the native replica and its primary. The native code waits without limit, gives up at its
 * first start without a primary, and replaces its file in place if the primary has another log (facts of libSQL;
 * fleet/README.md, Trust; fleet/replica/README.md). For each request it
 *
 *  1. answers `/info` with 404: the replica then starts without asking its primary,
 *  2. forwards replication calls only, from the replicator with the secret of this start,
 *  3. adds the read credential, which never leaves this process, and the primary's namespace,
 *  4. limits the wait for the answer and each pause in it; the body is forwarded unchanged,
 *  5. reads the log id from a handshake, and holds the answer back if it is another one.
 *
 * Anything but a valid answer of a primary (another status, another form, a truncated body) becomes a failed call,
 * never data.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Fetch } from '../../providers/provider.ts'
import { logOfHandshake } from './replication-handshake.ts'

const firstByteMs = 2000
const idleMs = 3000
/** Handshakes and requests are small. Larger bodies are refused. */
const maxBytes = 64 * 1024
const calls = /^\/wal_log\.ReplicationLog\/(Hello|LogEntries|BatchLogEntries|Snapshot)$/
const passedOn = ['content-type', 'te', 'x-session-token', 'x-libsql-client-version']
const unauthenticated = '16'

/** A primary and a credential that may read it. */
export interface Primary {
  url: string
  token: string
}

export interface ForwarderOptions {
  fetch: Fetch
  clock: Pick<Clock, 'monotonic'>
  randomBytes(size: number): Uint8Array
  /** Null while none is known. */
  primary(): Primary | null
  /** Whether the replica may continue with a primary of this log. */
  onHello(log: string): boolean
  /** The primary refuses the credential. */
  onRefused(): void
}

export interface Forwarder {
  url: string
  /** Makes the secret of the next replicator. The former one's becomes invalid. */
  newSecret(): string
  /** When the last bytes came through, monotonic. */
  readonly activeAt: number
  /** Bytes of answers since the start. */
  readonly bytes: number
  stop(): Promise<void>
}

export function startForwarder(options: ForwarderOptions): Forwarder {
  let secret = ''
  const state = { activeAt: Number.NEGATIVE_INFINITY, bytes: 0 }
  const heard = (bytes: number) => {
    state.activeAt = options.clock.monotonic()
    state.bytes += bytes
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    maxRequestBodySize: maxBytes,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/info') return new Response(null, { status: 404 })
      if (!isHeld(request.headers.get('x-authorization'), secret)) return new Response(null, { status: 401 })
      if (request.method !== 'POST' || !calls.test(pathname)) return new Response(null, { status: 404 })
      heard(0)
      return await forward(options, request, pathname, heard)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    newSecret() {
      secret = Buffer.from(options.randomBytes(32)).toString('base64url')
      return secret
    },
    get activeAt() {
      return state.activeAt
    },
    get bytes() {
      return state.bytes
    },
    stop: () => server.stop(true),
  }
}

function isHeld(given: string | null, secret: string): boolean {
  const [shown, held] = [Buffer.from(given ?? ''), Buffer.from(`Bearer ${secret}`)]
  return secret !== '' && shown.length === held.length && timingSafeEqual(shown, held)
}

async function forward(
  options: ForwarderOptions,
  request: Request,
  path: string,
  heard: (bytes: number) => void,
): Promise<Response> {
  const primary = options.primary()
  if (primary === null) return new Response(null, { status: 503 })
  const call = new AbortController()
  request.signal.addEventListener('abort', () => call.abort(), { once: true })
  try {
    const body = await request.arrayBuffer()
    const answer = await within(firstByteMs, call, () =>
      options.fetch(new URL(path, primary.url).href, {
        method: 'POST',
        headers: headersFor(request, primary),
        body,
        redirect: 'manual',
        signal: call.signal,
      }),
    )
    if (answer.headers.get('grpc-status') === unauthenticated || answer.status === 401) options.onRefused()
    const isAnswer = answer.ok && answer.headers.get('content-type')?.startsWith('application/grpc-web')
    if (!isAnswer || answer.body === null) throw new RangeError(`This is no answer of a primary: ${answer.status}`)
    const bounded = boundedBody(answer.body, call, heard)
    if (!path.endsWith('/Hello')) return new Response(bounded, { headers: answer.headers })
    const handshake = await wholeOf(bounded)
    const log = logOfHandshake(handshake)
    if (log !== null && !options.onHello(log)) return new Response(null, { status: 503 })
    return new Response(handshake, { headers: answer.headers })
  } catch {
    // Refused, hung, truncated or invalid: the replica sees a failed call and retries it.
    call.abort()
    return new Response(null, { status: 502 })
  }
}

function headersFor(request: Request, { url, token }: Primary): Headers {
  const headers = new Headers({ 'x-authorization': `Bearer ${token}`, 'x-namespace-bin': namespaceOf(url) })
  for (const name of passedOn) {
    const value = request.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}

/** The namespace as libSQL sends it: the first label of the host. */
function namespaceOf(url: string): string {
  const { hostname } = new URL(url)
  const name = hostname.includes('.') ? (hostname.split('.')[0] ?? '') : 'default'
  return Buffer.from(name).toString('base64').replace(/=+$/, '')
}

async function within<Result>(milliseconds: number, call: AbortController, work: () => Promise<Result>) {
  const timer = setTimeout(() => call.abort(), milliseconds)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}

/** Forwards the same bytes. Fails if the next ones do not come in time. */
function boundedBody(
  body: ReadableStream<Uint8Array>,
  call: AbortController,
  heard: (bytes: number) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await within(idleMs, call, () => reader.read())
      if (done) return controller.close()
      heard(value.length)
      controller.enqueue(value)
    },
    cancel() {
      call.abort()
    },
  })
}

async function wholeOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of body) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) throw new RangeError('A greeting is smaller than this')
  }
  return new Uint8Array(Buffer.concat(parts))
}
