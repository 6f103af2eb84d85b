/**
 * Bounds the memory of the conversations that WebSockets keep between their frames
 * (`conversation.ts`). A conversation is a convenience: its client can always send it again. So
 * nothing waits for this memory. Where a conversation does not fit, those that were used the longest ago are given up.
 */

export interface ConversationHolder {
  /** Its memory was taken away. */
  giveUp(): void
}

export class ConversationMemory {
  used = 0
  readonly #limit: number
  /** The bytes of each, in the order of their last use. */
  readonly #held = new Map<ConversationHolder, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Counts these bytes instead of what the conversation held before. False where they are more than there is at all.
   */
  hold(holder: ConversationHolder, bytes: number): boolean {
    this.release(holder)
    if (bytes > this.#limit) return false
    if (bytes === 0) return true
    for (const oldest of this.#held.keys()) {
      if (this.used + bytes <= this.#limit) break
      this.release(oldest)
      oldest.giveUp()
    }
    this.#held.set(holder, bytes)
    this.used += bytes
    return true
  }

  release(holder: ConversationHolder): void {
    this.used -= this.#held.get(holder) ?? 0
    this.#held.delete(holder)
  }
}
