/**
 * The servers that did not answer a list in time, in this process. A list asks such a server and hardly waits for it, so
 * that it delays one list and not each. The first answer ends that, and tells the sessions whose lists lack it.
 */
import type { McpServerRecord } from '../connection.ts'
import type { McpSession } from './session.ts'
import type { McpSessions } from './sessions.ts'

export class LateServers {
  readonly #sessions: Pick<McpSessions, 'recordsChanged'>
  /** The version of the record of each; a changed record is another server. */
  readonly #late = new Map<string, number>()
  /** The servers that lists of a session lack. */
  readonly #missed = new WeakMap<McpSession, Set<string>>()

  constructor(sessions: Pick<McpSessions, 'recordsChanged'>) {
    this.#sessions = sessions
  }

  has({ id, version }: McpServerRecord): boolean {
    return this.#late.get(id) === version
  }

  /** A list of this session goes on without the server. */
  missed(session: McpSession, { id, version }: McpServerRecord): void {
    this.#late.set(id, version)
    const missed = this.#missed.get(session) ?? new Set()
    this.#missed.set(session, missed.add(id))
  }

  answered({ id }: McpServerRecord): void {
    if (this.#late.delete(id))
      this.#sessions.recordsChanged((session) => this.#missed.get(session)?.delete(id) === true)
  }
}
