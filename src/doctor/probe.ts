/** One call with a short end, to somebody who may hang, refuse or say anything. */
import type { Clock } from '../lib/clock.ts'

export interface Answered {
  kind: 'answered'
  status: number
  text: string
  /** JSON as far as it is JSON; otherwise undefined. */
  body: unknown
  /** How far ahead the other's clock is, in milliseconds, to the second; null where it does not say the time. */
  aheadMs: number | null
}

export interface Silent {
  kind: 'silent'
  /** In words, without an address or a secret. */
  reason: string
}

export type Answer = Answered | Silent

/** `token` goes into the header and nowhere else. */
export type Probe = (url: string, token?: string) => Promise<Answer>

export interface ProbeOptions {
  fetch: typeof globalThis.fetch
  clock: Clock
  withinMs: number
}

const reasons: Readonly<Record<string, string>> = {
  ConnectionRefused: 'nothing listens there',
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'its name is unknown',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNRESET: 'the connection was reset',
  ConnectionClosed: 'the connection was closed',
  FailedToOpenSocket: 'no connection could be made',
}

export function createProbe({ fetch, clock, withinMs }: ProbeOptions): Probe {
  return async (url, token) => {
    const sentAt = clock.now()
    try {
      const response = await fetch(url, {
        headers: { accept: 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        // A redirect would carry the token to somebody else.
        redirect: 'manual',
        signal: AbortSignal.timeout(withinMs),
      })
      const middle = (sentAt + clock.now()) / 2
      const text = await response.text()
      const date = Date.parse(response.headers.get('date') ?? '')
      // The header is cut to the second.
      const aheadMs = Number.isNaN(date) ? null : Math.round(date + 500 - middle)
      return { kind: 'answered', status: response.status, text, body: parse(text), aheadMs }
    } catch (error) {
      return { kind: 'silent', reason: reasonOf(error, withinMs) }
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Somebody else answers there, or says it in words: the status is what is known.
    return undefined
  }
}

function reasonOf(error: unknown, withinMs: number): string {
  if (!(error instanceof Error)) return 'the call failed'
  if (error.name === 'TimeoutError') return `no answer within ${withinMs / 1000} s`
  const code = 'code' in error ? String(error.code) : ''
  if (reasons[code] !== undefined) return reasons[code]
  return /CERT|SSL|TLS/i.test(code)
    ? `its certificate is not accepted (${code})`
    : `the call failed (${code || error.name})`
}
