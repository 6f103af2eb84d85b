/** The chain of a gateway's worker, for tests. */

import type { ShippedBatch } from '../ingest/read-batch.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'

/** The texts of a worker's chain, from which it ships any stretch. */
export class WorkerChain {
  readonly texts: readonly string[]
  readonly #digests: string[]

  constructor(texts: readonly string[], name: string) {
    this.texts = texts
    const walk = new ChainWalk(chainStart(name))
    this.#digests = [chainStart(name)]
    for (const [index, text] of texts.entries()) {
      walk.step(index + 1, text)
      this.#digests.push(walk.digest)
    }
  }

  /** The chain's digest after so many. */
  digest(count = this.texts.length): string {
    return this.#digests[count] ?? ''
  }

  /** Those after `from`, up to number `to`. */
  batch(from = 0, to = this.texts.length): ShippedBatch {
    return { first: from + 1, texts: this.texts.slice(from, to), digest: this.digest(to) }
  }
}
