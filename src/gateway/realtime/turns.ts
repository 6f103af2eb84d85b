/** The responses of a session: those that wait to begin, those that run, and the ids of those that have ended. */
import { RecentIds } from './recent-ids.ts'
import type { Turn } from './turn.ts'

export class Turns {
  /** Sent and not begun, in the order in which the provider begins them. */
  readonly #awaited: Turn[] = []
  readonly #running = new Map<string, Turn>()
  /** What still comes of these is dropped. */
  readonly #ended = new RecentIds()
  /** All whose answers are not passed on whole. */
  readonly #live = new Set<Turn>()
  readonly #idle: (() => void)[] = []

  get size(): number {
    return this.#live.size
  }

  get waitingBytes(): number {
    let bytes = 0
    for (const turn of this.#live) bytes += turn.waitingBytes
    return bytes
  }

  [Symbol.iterator](): Iterator<Turn> {
    return this.#live[Symbol.iterator]()
  }

  add(turn: Turn): void {
    this.#live.add(turn)
  }

  /** Its `response.create` is sent now. */
  await(turn: Turn): void {
    this.#awaited.push(turn)
  }

  /** The answer of a turn was passed on, or there was none. */
  remove(turn: Turn): void {
    this.#live.delete(turn)
    if (this.#live.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Resolves when no response runs. */
  whenIdle(): Promise<void> {
    if (this.#live.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** The next response has begun; null where none was asked for, or the id was used before. */
  begin(responseId: string): Turn | null {
    if (this.#running.has(responseId) || this.#ended.has(responseId)) return null
    const turn = this.#awaited.shift() ?? null
    if (turn === null) return null
    this.#running.set(responseId, turn)
    turn.begun(responseId)
    return turn
  }

  /** Takes out a turn that the provider refused, by the id of our event. */
  refused(eventId: unknown): Turn | null {
    const index = this.#awaited.findIndex((turn) => turn.eventId === eventId)
    return index < 0 ? null : (this.#awaited.splice(index, 1)[0] ?? null)
  }

  of(responseId: string): Turn | 'ended' | null {
    return this.#running.get(responseId) ?? (this.#ended.has(responseId) ? 'ended' : null)
  }

  /** The provider has ended a response. */
  end(responseId: string): void {
    this.#running.delete(responseId)
    this.#ended.add(responseId)
  }

  /** The running response that makes an item; for an unknown item the one that adds to the conversation. */
  ofItem(itemId: unknown): Turn | null {
    let inConversation: Turn | null = null
    for (const turn of this.#running.values()) {
      if (typeof itemId === 'string' && turn.items.has(itemId)) return turn
      if (turn.inConversation) inConversation ??= turn
    }
    return inConversation
  }

  failAll(error: Error): void {
    for (const turn of this.#live) turn.fail(error)
  }
}
