/** The chain of a gateway's worker, for tests. */

import type { Line, ShippedBatch } from '../ingest/read-batch.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'

export const lineOf = (text: string): Line => ({ text, bytes: Buffer.from(text) })

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
    return { first: from + 1, lines: this.texts.slice(from, to).map(lineOf), digest: this.digest(to) }
  }
}
