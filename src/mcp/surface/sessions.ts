/**
 * The sessions of one gateway process, by id: bounded in number, in all and for each token, and ended when nobody has used
 * them for a while. A session is its token's alone: to another token it is not there.
 */
import { Failure } from '../../failure.ts'
import type { McpSession } from './session.ts'

interface Kept {
  readonly session: McpSession
  usedAt: number
}

export interface SessionLimits {
  /** How many there may be; a token may hold a tenth. */
  readonly most: number
  readonly idleMilliseconds: number
}

export class McpSessions {
  readonly #limits: SessionLimits
  readonly #kept = new Map<string, Kept>()

  constructor(limits: SessionLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#kept.size
  }

  /**
   * Adds a session. Of a token that holds its share already the longest unused gives way; where there is no room at all,
   * throws `mcp.too_many_sessions`. `now` is monotonic.
   */
  add(session: McpSession, now: number): void {
    const own = [...this.#kept.values()].filter((kept) => kept.session.token.hash === session.token.hash)
    if (own.length >= Math.max(1, Math.floor(this.#limits.most / 10))) {
      const oldest = own.reduce((one, other) => (other.usedAt < one.usedAt ? other : one))
      this.end(oldest.session)
    }
    if (this.#kept.size >= this.#limits.most) throw new Failure('mcp.too_many_sessions')
    this.#kept.set(session.id, { session, usedAt: now })
  }

  /** The session of this id and token, which is thereby used; null where there is none. */
  find(id: string, tokenHash: string, now: number): McpSession | null {
    const kept = this.#kept.get(id)
    if (kept === undefined || kept.session.token.hash !== tokenHash) return null
    kept.usedAt = now
    return kept.session
  }

  end(session: McpSession): void {
    this.#kept.delete(session.id)
    session.close()
  }

  /** Ends the sessions of these tokens. */
  endOf(tokenHashes: readonly string[]): void {
    for (const { session } of this.#kept.values()) if (tokenHashes.includes(session.token.hash)) this.end(session)
  }

  /** Ends what is unused, and what `isValid` does not let go on; keeps the connections of the others open. */
  sweep(now: number, isValid: (session: McpSession) => boolean): void {
    for (const kept of this.#kept.values()) {
      const { session } = kept
      if (session.busy) kept.usedAt = now
      if (now - kept.usedAt > this.#limits.idleMilliseconds || !isValid(session)) this.end(session)
      else session.keepAlive()
    }
  }

  /** Tells every session that the records of servers have changed. */
  recordsChanged(): void {
    for (const { session } of this.#kept.values()) session.recordsChanged()
  }

  close(): void {
    for (const { session } of this.#kept.values()) this.end(session)
  }
}
