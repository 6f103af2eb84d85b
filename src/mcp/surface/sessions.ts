/**
 * The sessions of one gateway process, by id: bounded in number, in all and for each token, and ended when nobody has
 * used them for a while. A session is its owner's alone (an OAuth grant's or a token account's, so that it outlives a
 * refresh and a rotation): to a token of another owner it is not there.
 */
import { Failure } from '../../failure.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { McpSession } from './session.ts'

/**
 * What the token that a session was last shown allows. `replaceable`: it has expired or was rotated, and the next one
 * of its owner goes on; `ended`: it was revoked.
 */
export type SessionStatus = 'usable' | 'replaceable' | 'ended'

interface Kept {
  readonly session: McpSession
  usedAt: number
}

export interface SessionLimits {
  /** How many there may be; an owner may hold a tenth. */
  readonly most: number
  readonly idleMilliseconds: number
  readonly ended: EndedSessions
}

export class McpSessions {
  readonly #limits: SessionLimits
  readonly #kept = new Map<string, Kept>()
  readonly #ended: EndedSessions

  /** What servers said to sessions and found no room, since the start. */
  evicted = 0

  constructor(limits: SessionLimits) {
    this.#limits = limits
    this.#ended = limits.ended
  }

  get size(): number {
    return this.#kept.size
  }

  /**
   * Adds a session. Of an owner that holds its share already the longest unused gives way. Where there is no room at all,
   * the longest unused of a caller of 2026-07-28 does, who misses nothing of it; without one, throws
   * `mcp.too_many_sessions`. `now` is monotonic.
   */
  add(session: McpSession, now: number): void {
    const own = [...this.#kept.values()].filter((kept) => kept.session.owner === session.owner)
    if (own.length >= Math.max(1, Math.floor(this.#limits.most / 10))) this.#endOldest(own)
    if (this.#kept.size >= this.#limits.most)
      this.#endOldest([...this.#kept.values()].filter((kept) => kept.session.modern && !kept.session.busy))
    if (this.#kept.size >= this.#limits.most) throw new Failure('mcp.too_many_sessions')
    this.#kept.set(session.id, { session, usedAt: now })
  }

  #endOldest(kept: readonly Kept[]): void {
    const [first] = kept
    if (first === undefined) return
    this.end(kept.reduce((one, other) => (other.usedAt < one.usedAt ? other : one), first).session)
  }

  /** The session of this id and owner, which is thereby used; null where there is none. */
  find(id: string, owner: string, now: number): McpSession | null {
    const kept = this.#kept.get(id)
    if (kept === undefined || kept.session.owner !== owner) return null
    const { session } = kept
    // Another worker may have made the same session again, and its caller may have ended it there.
    if (session.revived && this.hasEnded(id)) {
      this.end(session)
      return null
    }
    kept.usedAt = now
    return session
  }

  /** Whether a session of this id ended in this process, or its caller ended it at a worker of this host. */
  hasEnded(id: string): boolean {
    return this.#ended.has(id)
  }

  end(session: McpSession): void {
    this.#kept.delete(session.id)
    if (!session.modern) this.#ended.add(session.id)
    session.close()
  }

  /** Ends a session for its caller. Throws where that cannot be kept on the disk. */
  endForGood(session: McpSession): void {
    this.end(session)
    this.#ended.keep(session.id)
  }

  /** Ends the sessions of these tokens. */
  endOf(tokenHashes: readonly string[]): void {
    for (const { session } of this.#kept.values()) if (tokenHashes.includes(session.token.hash)) this.end(session)
  }

  /**
   * Ends what is unused, and what has no token any more; keeps the connections of the others open. While its token is
   * replaced nothing runs or leaves, so that it counts as unused.
   */
  sweep(now: number, statusOf: (session: McpSession) => SessionStatus): void {
    for (const kept of this.#kept.values()) {
      const { session } = kept
      const status = statusOf(session)
      if (session.busy && status === 'usable') kept.usedAt = now
      if (now - kept.usedAt > this.#limits.idleMilliseconds || status === 'ended') this.end(session)
      else session.keepAlive()
    }
  }

  /** Tells sessions that the records of servers have changed. */
  recordsChanged(concerns: (session: McpSession) => boolean = () => true): void {
    for (const { session } of this.#kept.values()) if (concerns(session)) session.recordsChanged()
  }

  /** The process no longer takes requests. */
  drain(): void {
    for (const { session } of this.#kept.values()) session.drain()
  }

  close(): void {
    for (const { session } of this.#kept.values()) this.end(session)
  }
}
