/**
 * A protocol endpoint as a table of named checks in order, each with the place that demands it. A check looks at facts
 * and says what is wrong, or null; the first that says something decides.
 */

/** RFC 6749 sections 4.1.2.1 and 5.2; RFC 8707 section 2. */
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

export interface Refusal {
  error: OAuthErrorCode
  /** For the developer of the application; holds nothing that was sent. */
  description: string
  /** A secret that works once was presented again: all that came of it must end. */
  replay?: true
}

export interface Check<Facts> {
  name: string
  /** `RFC 6749 §4.1.1`, or `oauth/README.md`. */
  source: string
  check(facts: Facts): Refusal | null
}

export const refuse = (error: OAuthErrorCode, description: string): Refusal => ({ error, description })

/** What the first check that finds fault says; null where none does. */
export function firstRefusal<Facts>(checks: readonly Check<Facts>[], facts: Facts): Refusal | null {
  for (const { check } of checks) {
    const refusal = check(facts)
    if (refusal !== null) return refusal
  }
  return null
}
