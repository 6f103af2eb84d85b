/**
 * What the ledger knows of a record besides its text: its position, when it happened as far as the ledger believes it,
 * and, if quarantined, the note. The worker did not know that when it made the chain's digests, so a second chain of
 * digests covers it: a0 = SHA-256(domain ‖ chain id), an = SHA-256(an−1 ‖ n ‖ SHA-256(text of n)). It is computed when a
 * checkpoint is signed, and only its heads are kept.
 */
import type { ChainReader } from '../engine/event-log.ts'
import { ChainWalk } from '../log/chain.ts'
import type { Quarantine } from '../log/quarantine.ts'
import type { ChainPoint } from './checkpoint.ts'

interface Arrival {
  position: number
  /** In milliseconds since the epoch. */
  at: number
  quarantine: Quarantine | undefined
}

/** The text of a record for this second chain. */
export const arrivalText = ({ position, at, quarantine }: Arrival): string =>
  quarantine === undefined ? `${position},${at}` : `${position},${at}${noteText(quarantine)}`

const noteText = ({ reason, event_id, chain, seq, bytes }: Quarantine): string =>
  JSON.stringify([reason, event_id, chain, seq, bytes])

export const arrivalsStart = (chain: string): string =>
  new Bun.CryptoHasher('sha256').update(`gatehouse.arrivals.v1\0${chain}`).digest('hex')

/** The digest of arrivals up to record `to`, continued from `from`. Null if records between are missing or damaged. */
export async function arrivalsUpTo(
  chains: ChainReader,
  chain: string,
  from: Pick<ChainPoint, 'seq' | 'arrivals'>,
  to: number,
): Promise<string | null> {
  const walk = new ChainWalk(from.arrivals)
  let last = from.seq
  for await (const record of chains.records(chain, { after: from.seq, upTo: to, bodies: false })) {
    if (record === null) return null
    walk.step(record.seq, arrivalText(record))
    last = record.seq
  }
  return last === to ? walk.digest : null
}
