/**
 * The one way a call leaves for a provider: a POST whose credential and headers are the operator's, whatever the caller
 * sent under the same names. A redirect is not followed, since it could carry the credential elsewhere; compression is
 * asked not to be; the gateway's own deadlines hold, so fetch has none.
 */
import { Failure } from '../failure.ts'
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

/** The operator's headers of a provider, over what its kind sends by itself. */
export function operatorHeaders(provider: Provider, credential: Readonly<Record<string, string>>) {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...credential }
  for (const [name, value] of Object.entries(provider.headers)) headers[name.toLowerCase()] = value
  return headers
}

export const post = (
  url: string,
  headers: Readonly<Record<string, string>>,
  call: UpstreamCall,
  fetch: Fetch,
): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { ...call.headers, 'content-type': call.contentType, ...headers },
    body: call.body,
    signal: call.signal,
    redirect: 'manual',
    timeout: false,
  })

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

/** Headers of an answer whose body is made anew: what described the old one is left out. */
export function withoutLength(headers: Headers): Headers {
  const kept = new Headers(headers)
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name)
  return kept
}
