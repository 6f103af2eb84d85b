/** Proof Key for Code Exchange, S256 only (RFC 7636). */

import { sameText } from '../../lib/text/same-text.ts'
import { challengeOf } from '../../members/programs/program-code.ts'

/** Section 4.1: 43 to 128 unreserved characters. */
export const isCodeVerifier = (text: string): boolean => /^[A-Za-z0-9\-._~]{43,128}$/.test(text)

/** Whether a verifier is the one behind a challenge (section 4.6), in constant time. */
export const provesPossession = (verifier: string, challenge: string): boolean =>
  sameText(challengeOf(verifier), challenge)
