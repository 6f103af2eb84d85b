/**
 * What a browser carries while its person is at another server: the secrets of the request, sealed under the master key
 * in a cookie of its own. An answer counts only together with it, in the browser that asked (login CSRF, RFC 9700
 * section 4.7), and only for ten minutes. Nothing is stored, so nobody can fill the ledger by beginning attempts, and any
 * control plane can take the answer.
 */
import { z } from 'zod'
import { sameText } from '../../lib/text/same-text.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { ProviderRefusal } from '../identity-providers/provider-refusal.ts'
import { forgetCookie, keepCookie, readCookie } from './session-cookie.ts'

const lifetimeSeconds = 600

const secretsSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  expiresAt: z.number(),
})
export type Sealed<Asked> = Asked & z.infer<typeof secretsSchema>

export interface AttemptKeys {
  masterKey: MasterKey
  clock: { now(): number }
  randomBytes(size: number): Uint8Array
  baseUrl(): string
}

/** Attempts of one kind, with a cookie of their own. `what` stands in the refusal, such as `sign-in`. */
export function sealedAttempts<Asked extends object>(kind: { cookie: string; what: string; asked: z.ZodType<Asked> }) {
  const context = `${kind.what} attempt`
  const open = ({ masterKey, baseUrl }: AttemptKeys, request: Request): Sealed<Asked> | null => {
    const sealed = readCookie(request, kind.cookie, baseUrl())
    if (sealed === null) return null
    try {
      const text: unknown = JSON.parse(masterKey.openPassing(sealed, context))
      return { ...kind.asked.parse(text), ...secretsSchema.parse(text) }
    } catch {
      // Not sealed by this installation: as good as none.
      return null
    }
  }
  return {
    /** Begins an attempt: its secrets, and the cookie that keeps them. */
    begin(keys: AttemptKeys, asked: Asked): { attempt: Sealed<Asked>; cookie: string } {
      const random = () => Buffer.from(keys.randomBytes(32)).toString('base64url')
      const expiresAt = keys.clock.now() + lifetimeSeconds * 1000
      const attempt = { ...asked, state: random(), nonce: random(), verifier: random(), expiresAt }
      const sealed = keys.masterKey.sealPassing(JSON.stringify(attempt), context)
      return { attempt, cookie: keepCookie(kind.cookie, sealed, lifetimeSeconds, keys.baseUrl()) }
    },
    /** The attempt that an answer belongs to. Throws `ProviderRefusal` unless this browser made it, and `fits`. */
    of(keys: AttemptKeys, request: Request, state: string | null, fits: (asked: Asked) => boolean): Sealed<Asked> {
      const kept = open(keys, request)
      const isOwn = kept !== null && fits(kept) && state !== null && sameText(state, kept.state)
      if (isOwn && keys.clock.now() < kept.expiresAt) return kept
      const message = `This browser did not begin this ${kind.what}, or did so too long ago`
      throw new ProviderRefusal('attempt_missing', message)
    },
    forget: ({ baseUrl }: Pick<AttemptKeys, 'baseUrl'>): string => forgetCookie(kind.cookie, baseUrl()),
  }
}
