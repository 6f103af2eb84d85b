/**
 * Who calls, where it is a gateway whose session was found a moment ago: gateways call every second, and all at once when
 * they acknowledge a change, and two reads of the databases for each of those calls were most of what a revocation cost.
 *
 *   - A session is remembered for 10 s. It is never changed, and what is taken back is the runtime token behind it.
 *   - That token is held against the newest version of the state that is known here, which is at most a second old; where
 *     the primary is out of reach, against the last that was known: nothing can be taken back then.
 *
 * Whatever is not known, or no longer holds, is left to the databases, which also say why.
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
const mostRemembered = 10_000

export interface KnownSessionsOptions {
  ledger: Database
  stateHead: Pick<StateHead, 'recentWithin'>
  tokens: Pick<RuntimeTokens, 'active'>
  clock: Clock
}

export class KnownSessions {
  readonly #options: KnownSessionsOptions
  readonly #found = new Map<string, { session: RuntimeSessionRow; until: number }>()

  constructor(options: KnownSessionsOptions) {
    this.#options = options
  }

  /** The gateway's instance that calls; null for anybody else, and where only the databases can tell. */
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
    if (this.#found.size >= mostRemembered) this.#found.clear()
    this.#found.set(hash, { session, until: clock.monotonic() + rememberedMs })
    return session
  }
}
