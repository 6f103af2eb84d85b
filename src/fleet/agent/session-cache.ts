/**
 * Caches the sessions of gateways. Gateways call every second, and all at once when they acknowledge a change. Two
 * database reads for each of these calls were most of the cost of a revocation.
 *
 *  - A session is cached for 10 s. It never changes; what may be revoked is its runtime token.
 *  - That token is checked at the newest state version known here, at most a second old. While the primary is
 *    unreachable the last known version counts, since nothing can be revoked then.
 *
 * Sessions that are unknown or no longer valid are left to the databases, which also give the reason.
 */

import { eq } from 'drizzle-orm'
import type { Principal } from '../../identity/principal.ts'
import { bearerSecret, hashSecret, secretKind } from '../../identity/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { runtimeSessions } from '../../store/schema/ledger/fleet.ts'
import { type RuntimeSessionRow, runtimePrincipal } from '../../tokens/authenticate.ts'
import { stateWaitMs } from '../../usage/known-limit-rows.ts'
import type { RuntimeTokens } from '../coordinator/runtime-token.ts'
import type { StateHead } from '../state/state-head.ts'

const rememberedMs = 10_000
const maxRemembered = 10_000

export interface SessionCacheOptions {
  ledger: Database
  stateHead: Pick<StateHead, 'recentWithin'>
  tokens: Pick<RuntimeTokens, 'active'>
  clock: Clock
}

export class SessionCache {
  readonly #options: SessionCacheOptions
  readonly #found = new Map<string, { session: RuntimeSessionRow; until: number }>()

  constructor(options: SessionCacheOptions) {
    this.#options = options
  }

  /** The calling gateway instance; null for other callers, and if only the databases can tell. */
  async principal(request: Request): Promise<Principal | null> {
    const secret = bearerSecret(request.headers.get('authorization') ?? '') ?? ''
    if (secretKind(secret) !== 'session') return null
    const { clock, stateHead, tokens } = this.#options
    const session = await this.#session(hashSecret(secret))
    if (session === null || clock.now() >= session.expiresAt) return null
    const { version } = await stateHead.recentWithin(stateWaitMs)
    return (await tokens.active(session.tokenId, version)) ? runtimePrincipal(session) : null
  }

  async #session(hash: string): Promise<RuntimeSessionRow | null> {
    const { ledger, clock } = this.#options
    const known = this.#found.get(hash)
    if (known !== undefined && clock.monotonic() < known.until) return known.session
    this.#found.delete(hash)
    const session = await query(ledger).select().from(runtimeSessions).where(eq(runtimeSessions.hash, hash)).get()
    if (session === undefined) return null
    if (this.#found.size >= maxRemembered) this.#found.clear()
    this.#found.set(hash, { session, until: clock.monotonic() + rememberedMs })
    return session
  }
}
