/**
 * Whether a worker's chain and the ledger's agree (fleet/outbox/README.md). A host crash may lose the last 100 ms of
 * the outbox, including shipped events. Events written later reuse their numbers, so only digests show the difference.
 * They are computed over the worker's own records, from the last point at which both are known to agree.
 */
import { chainNext } from '../../events/log/chain.ts'
import { asFailure } from '../../failure.ts'
import type { AnnouncedHead, ChainHead } from '../protocol/wire.ts'
import type { OutboxReader } from './reader.ts'
import { eventBody } from './record.ts'

/** The part of a worker's chain that is compared with the ledger. */
export interface OwnChain {
  /** The last known point at which worker and ledger agreed. */
  agreed: ChainHead | null
  /** The number of the last event. */
  last: number
  /** How many events the worker can be sure of. */
  trusted: number
  reader(): OutboxReader
}

/** Null where the announced head is of this chain; otherwise the number up to which both surely are the same. */
export function forkedAfter(own: OwnChain, announced: AnnouncedHead): number | null {
  const points = [...announced.earlier, announced].filter(({ seq }) => seq <= own.last)
  const digests = ownDigests(own, Math.max(0, ...points.map(({ seq }) => seq)))
  const wrong = points.some(({ seq, digest }) => (digests.get(seq) ?? digest) !== digest)
  if (!wrong && announced.seq <= own.trusted) return null
  const same = points.filter(({ seq, digest }) => digests.get(seq) === digest).map(({ seq }) => seq)
  if (own.agreed !== null && own.agreed.seq <= announced.seq) same.push(own.agreed.seq)
  // Without digests only the worker's own numbers can be used.
  return same.length > 0 ? Math.max(...same) : Math.min(own.trusted, announced.seq)
}

const readAtOnce = 512

/** Digests by number, from the agreed point to `to`; none if they are unknown or no longer kept. */
function ownDigests({ agreed, last, reader: open }: OwnChain, to: number): Map<number, string> {
  const digests = new Map<number, string>()
  if (agreed === null || agreed.seq > last) return digests
  digests.set(agreed.seq, agreed.digest)
  const reader = open()
  try {
    let { seq, digest } = agreed
    while (seq < to) {
      const events = reader.read(seq, Math.min(readAtOnce, to - seq))
      if (events.length === 0) break
      for (const { n, record } of events) {
        digest = chainNext(digest, n, eventBody(record))
        digests.set(n, digest)
        seq = n
      }
    }
  } catch (error) {
    if (asFailure(error).code !== 'chain_lost') throw error
  } finally {
    reader.close()
  }
  return digests
}
