/** The ids that came last, in a bounded number. */
const mostIds = 1024

export class RecentIds {
  readonly #ids = new Set<string>()

  has(id: unknown): boolean {
    return typeof id === 'string' && this.#ids.has(id)
  }

  add(id: string): void {
    this.#ids.delete(id)
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > mostIds && oldest !== undefined) this.#ids.delete(oldest)
  }
}
