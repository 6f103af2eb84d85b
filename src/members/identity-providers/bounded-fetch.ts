/**
 * `fetch` for what a provider answers: no redirect is followed, and an answer that hangs, drips or grows beyond the
 * bounds is an error instead of memory or a waiting sign-in.
 */
import { ProviderRefusal } from './provider-refusal.ts'

export type Fetch = (url: string, options: RequestInit) => Promise<Response>

export interface FetchBounds {
  /** For the whole answer, from the call to its last byte. */
  milliseconds: number
  bytes: number
}

/** Discovery documents, key sets and tokens have a few kilobytes. */
export const providerBounds: FetchBounds = { milliseconds: 10_000, bytes: 512 * 1024 }

/** Throws `ProviderRefusal` where there is no answer, or it is late or too large; the one it gives has been read whole. */
export const boundedFetch =
  (fetch: Fetch, { milliseconds, bytes }: FetchBounds = providerBounds): Fetch =>
  async (url, { signal: _openended, ...options }) => {
    const bound = new AbortController()
    const timer = setTimeout(() => bound.abort(new Error('The provider did not answer in time')), milliseconds)
    try {
      const response = await fetch(url, { ...options, redirect: 'manual', signal: bound.signal })
      const { status, headers } = response
      const body = await readWithin(response, bytes, bound)
      return new Response([204, 304].includes(status) ? null : body, { status, headers })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      throw new ProviderRefusal('provider_unreachable', message, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

async function readWithin({ body }: Response, most: number, bound: AbortController): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > most) {
      const error = new Error(`The provider's answer is larger than ${most} bytes`)
      bound.abort(error)
      throw error
    }
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
