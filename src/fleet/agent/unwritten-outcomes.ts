/**
 * Retries outcomes that could not be written until they are. Otherwise such an exchange would keep its space and its
 * segment until the next start, which would record it as interrupted although its outcome is known.
 */
const retryMs = 500

export class UnwrittenOutcomes {
  readonly #bodies = new Map<string, readonly string[]>()
  readonly #close: (exchangeId: string, bodies: readonly string[]) => Promise<void>
  #timer: Timer | null = null

  /** `close` adds what fails again by itself. */
  constructor(close: (exchangeId: string, bodies: readonly string[]) => Promise<void>) {
    this.#close = close
  }

  add(exchangeId: string, bodies: readonly string[]): void {
    this.#bodies.set(exchangeId, bodies)
    this.#timer ??= setTimeout(() => this.retry(), retryMs).unref()
  }

  forget(exchangeId: string): void {
    this.#bodies.delete(exchangeId)
  }

  retry(): void {
    this.stop()
    const taken = [...this.#bodies]
    this.#bodies.clear()
    // The caller was told of the first failure.
    for (const [exchangeId, bodies] of taken) this.#close(exchangeId, bodies).catch(() => undefined)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
