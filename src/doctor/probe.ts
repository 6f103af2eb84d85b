/** Makes one call with a short timeout to a server that may hang, refuse or answer anything. */

import type { Clock } from '../lib/clock.ts'
import { callFailure } from '../lib/http/call-failure.ts'

export interface Answered {
  kind: 'answered'
  status: number
  text: string
  /** The parsed JSON, otherwise undefined. */
  body: unknown
  /** How many milliseconds the other clock is ahead, to the second; null when the answer has no Date. */
  aheadMs: number | null
}

export interface Unreachable {
  kind: 'silent'
  /** In words, without an address or a secret. */
  reason: string
}

export type Answer = Answered | Unreachable

/** `token` is sent in the header and nowhere else. */
export type Probe = (url: string, token?: string) => Promise<Answer>

export interface ProbeOptions {
  fetch(url: string, init: RequestInit): Promise<Response>
  clock: Clock
  withinMs: number
}

export function createProbe({ fetch, clock, withinMs }: ProbeOptions): Probe {
  return async (url, token) => {
    const sentAt = clock.now()
    try {
      const response = await fetch(url, {
        headers: { accept: 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        // A redirect would carry the token to another server.
        redirect: 'manual',
        signal: AbortSignal.timeout(withinMs),
      })
      const middle = (sentAt + clock.now()) / 2
      const text = await response.text()
      const date = Date.parse(response.headers.get('date') ?? '')
      // The Date header is truncated to the second.
      const aheadMs = Number.isNaN(date) ? null : Math.round(date + 500 - middle)
      return { kind: 'answered', status: response.status, text, body: parse(text), aheadMs }
    } catch (error) {
      return { kind: 'silent', reason: callFailure(error, `no answer within ${withinMs / 1000} s`) }
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Another server, or text instead of JSON: only the status is known.
    return undefined
  }
}
