/**
 * Retries outcomes that could not be written until they are. Otherwise such an exchange would keep its space and its
 * segment until the next start, which would record it as interrupted although its outcome is known.
 */
const retryMs = 500

export class UnwrittenOutcomes {
  readonly #bodies = new Map<string, string>()
  readonly #close: (exchangeId: string, body: string) => Promise<void>
  #timer: Timer | null = null

  /** `close` adds what fails again by itself. */
  constructor(close: (exchangeId: string, body: string) => Promise<void>) {
    this.#close = close
  }

  add(exchangeId: string, body: string): void {
    this.#bodies.set(exchangeId, body)
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
    for (const [exchangeId, body] of taken) this.#close(exchangeId, body).catch(() => undefined)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
