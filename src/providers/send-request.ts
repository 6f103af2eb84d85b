/**
 * Sends every call to a provider: a request, mostly a POST, whose credential and headers are the operator's, even if
 * the caller sent headers of the same names. A redirect is not followed, since it could carry the credential elsewhere.
 * Compression is declined. The gateway's own deadlines hold, so fetch has none.
 */
import { Failure } from '../failure.ts'
import { poolOf } from '../lib/http/connection-pools.ts'
import { isModelName } from './model-name.ts'
import type { Fetch, Provider, UpstreamCall } from './provider.ts'

/** What is the same for every call to a provider. */
export interface Address {
  /** Without a slash at its end. */
  base: string
  /** Names in lower case; they win over the caller's. */
  headers: Readonly<Record<string, string>>
}

/** Makes an address once for each provider: a changed provider is a new object. */
export function addressBook<Known extends Address>(address: (provider: Provider) => Known): (of: Provider) => Known {
  const known = new WeakMap<Provider, Known>()
  return (provider) => {
    let found = known.get(provider)
    if (found === undefined) {
      found = address(provider)
      known.set(provider, found)
    }
    return found
  }
}

/** The operator's headers of a provider, which override those of its kind. */
export function operatorHeaders(provider: Provider, credential: Readonly<Record<string, string>>) {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...credential }
  for (const [name, value] of Object.entries(provider.headers)) headers[name.toLowerCase()] = value
  return headers
}

/**
 * Longer bodies are sent in pieces: fetch copies a body that it is given whole, and keeps the copy until the answer.
 */
const largestWhole = 256 * 1024
const pieceBytes = 64 * 1024

function inPieces({ body, sending }: UpstreamCall): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at >= body.length) return controller.close()
        sending?.()
        controller.enqueue(body.subarray(at, at + pieceBytes))
        at += pieceBytes
      },
    },
    { highWaterMark: 0 },
  )
}

/** RFC 9110 section 15: a status is from 100 to 599, and a caller treats any other as a fault of the server. */
export class InvalidStatus extends Error {
  constructor(status: number) {
    super(`The provider answered with the status ${status}, which HTTP does not have`)
  }
}

export const post = (
  url: string,
  headers: Readonly<Record<string, string>>,
  call: UpstreamCall,
  fetch: Fetch,
): Promise<Response> => {
  const { body, endpoint } = call
  const method = endpoint?.method ?? 'POST'
  const hasBody = method === 'POST' && body.length > 0
  const isLarge = body.length > largestWhole
  const tls = poolOf(url, call.slot ?? 0)
  return fetch(url, {
    method,
    headers: {
      ...call.headers,
      ...(hasBody && { 'content-type': call.contentType }),
      // Without it a stream would be sent in chunks, which some providers refuse.
      ...(isLarge && { 'content-length': String(body.length) }),
      ...headers,
    },
    ...(hasBody && { body: isLarge ? inPieces(call) : body }),
    signal: call.signal,
    redirect: 'manual',
    timeout: false,
    ...(tls !== undefined && { tls }),
  }).then(withValidStatus)
}

function withValidStatus(answer: Response): Response | Promise<never> {
  return answer.status <= 599 ? answer : refuseStatus(answer)
}

async function refuseStatus({ status, body }: Response): Promise<never> {
  await body?.cancel()
  throw new InvalidStatus(status)
}

/**
 * The address of these segments below a base. Each segment stays one segment, however it is written: a name that could
 * leave its place throws `model_not_found`.
 */
export function addressUnder(base: string, ...segments: string[]): string {
  if (!segments.every(isModelName)) throw new Failure('model_not_found', { param: 'model' })
  return [base, ...segments.map(encodeURIComponent)].join('/')
}

/** A base URL's origin and path, without slashes at the end: `https://host/openai/` is `https://host` and `/openai`. */
export function baseParts(url: string): { origin: string; path: string } {
  const { origin, pathname } = new URL(url)
  return { origin, path: pathname.replace(/\/+$/, '') }
}

/** Headers of an answer whose body is rewritten: those that describe the old body are left out. */
export function withoutLength(headers: Headers): Headers {
  const kept = new Headers(headers)
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name)
  return kept
}
