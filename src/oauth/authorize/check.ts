/**
 * A protocol endpoint as an ordered table of named checks, each with its source. A check looks at facts and returns an
 * error or null. The first error decides.
 */

/** RFC 6749 sections 4.1.2.1 and 5.2; RFC 8707 section 2; RFC 8628 section 3.5. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'access_denied'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'

export interface Refusal {
  error: OAuthErrorCode
  /** For the developer of the application. Contains nothing that was sent. */
  description: string
  /** A one-time secret was presented again: everything that came of it must end. */
  replay?: true
  /** Seconds: answered as 429 with this wait. */
  retryAfter?: number
}

export interface Check<Facts> {
  name: string
  /** `RFC 6749 §4.1.1`, or `oauth/README.md`. */
  source: string
  check(facts: Facts): Refusal | null
}

export const refuse = (error: OAuthErrorCode, description: string): Refusal => ({ error, description })

/** The error of the first check that fails; null if all pass. */
export function firstRefusal<Facts>(checks: readonly Check<Facts>[], facts: Facts): Refusal | null {
  for (const { check } of checks) {
    const refusal = check(facts)
    if (refusal !== null) return refusal
  }
  return null
}
