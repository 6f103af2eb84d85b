/**
 * Which tools, prompts and resources of a server may be used, as it defines them now: those whose definition was
 * approved. A server that changes a definition, and tells so or is listed again, has that tool held back from calls
 * too, not only from lists (protection against definitions that change after approval).
 */
import type { OfferKind } from '../connection.ts'
import type { MarkedArgument } from '../header-values.ts'

/** What a server lists of one kind, by its names or addresses. */
export interface ShownNames {
  readonly approved: ReadonlySet<string>
  readonly held: ReadonlySet<string>
  /** The arguments of approved tools that HTTP headers repeat; tools without any are left out. */
  readonly marked: ReadonlyMap<string, readonly MarkedArgument[]>
}

export class ShownOffers {
  readonly #names = new Map<OfferKind, Promise<ShownNames>>()

  /** `load` lists it where that was not done since the last change. */
  names(kind: OfferKind, load: () => Promise<ShownNames>): Promise<ShownNames> {
    const known = this.#names.get(kind)
    if (known !== undefined) return known
    const loading = load()
    this.#names.set(kind, loading)
    loading.catch(() => this.#names.delete(kind))
    return loading
  }

  /** What was found is looked for again. */
  forget(): void {
    this.#names.clear()
  }
}
