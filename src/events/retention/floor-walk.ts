/** Walks chains on from their floors, and raises these to where the walk ended. */
import type { Log } from '../../lib/log/log.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'
import { arrivalsStart } from '../proof/arrivals.ts'
import type { SigningKey } from '../proof/checkpoint-key.ts'
import { type Floor, floorBody, floorKind, raiseFloor } from './retention-floor.ts'

export interface RetentionOptions {
  ledger: Database
  key: SigningKey
  clock: { now(): number; monotonic(): number }
  log: Log
  settings: { event_retention_days: number; sink_hold_days: number }
  /**
   * The position from which a sink still needs the log; null where none does. It is kept for `sink_hold_days` more, and
   * no longer.
   */
  heldFrom(): Promise<number | null>
  /** How long one round works; the next continues. Default: one second. */
  roundMs?: number
}

export const dayMs = 86_400_000
/** Signatures of floors between two turns of other work: a few milliseconds. */
const floorsAtOnce = 50

/** A floor, where it was and where it will be. */
export interface Raised {
  from: number
  floor: Floor
}

export const firstFloor = (chain: string): Floor => ({
  ...{ chain, seq: 0, until: 0 },
  digest: chainStart(chain),
  arrivals: arrivalsStart(chain),
})

/** Walks a chain on from its floor. */
export class FloorWalk {
  readonly records: ChainWalk
  readonly arrivals: ChainWalk
  readonly #floor: Floor
  seq: number

  constructor(floor: Floor) {
    this.#floor = floor
    this.seq = floor.seq
    this.records = new ChainWalk(floor.digest)
    this.arrivals = new ChainWalk(floor.arrivals)
  }

  raised(receivedAt: number): Raised {
    const { chain, seq: from, until } = this.#floor
    const { seq, records, arrivals } = this
    const floor = { chain, seq, digest: records.digest, arrivals: arrivals.digest, until: Math.max(until, receivedAt) }
    return { from, floor }
  }
}

/** Statements that raise floors; their transaction fails where one is no longer where it was. */
export async function floorStatements(
  { key, clock }: Pick<RetentionOptions, 'key' | 'clock'>,
  raised: readonly Raised[],
): Promise<Statement[]> {
  const statements: Statement[] = []
  for (const [index, { from, floor }] of raised.entries()) {
    statements.push(...raiseFloor(floor.chain, from, floor.seq, key.sign(floorKind, floorBody(floor, clock.now()))))
    if (index % floorsAtOnce === floorsAtOnce - 1) await yieldToEventLoop()
  }
  return statements
}
