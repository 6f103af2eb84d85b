/**
 * Notices that retention has removed events that a reader, going from the oldest on, had not reached: its result would
 * have a hole. Within a chain numbers and positions have the same order, and retention removes the first events. So
 * for each chain the reader's progress is kept, and a floor beyond it is a hole.
 *
 * The number up to which a chain was read is found by bisection, so this costs a few look-ups for each chain, however
 * many events there are. It may report a hole that is none (events removed between the read of a page and the check of
 * the floors), but never the other way round.
 */
import { Failure } from '../../failure.ts'
import { asBytes, storedBytes } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Position } from '../query/public-event.ts'

export class UnreadEvents {
  readonly #ledger: Database
  /** The number up to which each chain was read, or was already removed when the reader began. */
  #readTo: ReadonlyMap<string, number>

  private constructor(ledger: Database, reaches: readonly Reach[]) {
    this.#ledger = ledger
    this.#readTo = new Map(reaches.map(({ chain, reach }) => [chain, reach]))
  }

  /** For a reader that starts at a position. */
  static async from(ledger: Database, first: Position): Promise<UnreadEvents> {
    return new UnreadEvents(ledger, await readReaches(ledger, '<', first))
  }

  /** Call when everything up to a position was read. Throws `export_overtaken` if retention had removed some of it. */
  async readUpTo(position: Position): Promise<void> {
    const reaches = await readReaches(this.#ledger, '<=', position)
    // A chain that appeared later begins behind the reader's last event.
    const known = reaches.filter(({ chain }) => this.#readTo.has(chain))
    if (known.some(({ chain, floor }) => floor > (this.#readTo.get(chain) ?? 0))) throw new Failure('export_overtaken')
    this.#readTo = new Map(known.map(({ chain, reach }) => [chain, Math.max(reach, this.#readTo.get(chain) ?? 0)]))
  }
}

interface Reach {
  chain: string
  /** The last number that retention has removed. */
  floor: number
  /** The last number whose event is before the position; the floor if there is none. */
  reach: number
}

/** More steps than a bisection of any chain takes; tampered numbers might never end. */
const roundsAtMost = 64

async function readReaches(ledger: Database, before: '<' | '<=', position: Position): Promise<Reach[]> {
  const found = `from events where events.chain = search.chain
    and events.seq = (search.reach + search.beyond) / 2 and +events.position ${before} ?`
  const goesOn = `search.beyond - search.reach > 1 and search.round < ${roundsAtMost}`
  const rows = await ledger.read<{ chain: unknown; floor: number; reach: number }>(
    `with recursive search (chain, floor, reach, beyond, round) as (
      select chain, floor, floor, coalesce((select max(seq) from events where events.chain = begun.chain), 0) + 1, 0
        from (select chain, coalesce((select seq from chain_floors where chain_floors.chain = chains.chain), 0) as floor
          from chains) as begun
      union all
      select search.chain, search.floor,
        coalesce((select seq ${found}), search.reach),
        iif(exists (select 1 ${found}), search.beyond, (search.reach + search.beyond) / 2), search.round + 1
        from search where ${goesOn})
    select ${asBytes('chain')} as chain, cast(floor as real) as floor, cast(reach as real) as reach
      from search where not (${goesOn})`,
    [position, position],
  )
  return rows.map(({ chain, floor, reach }) => ({ chain: nameOf(chain), floor, reach }))
}

/** Its bytes, whatever they are. */
const nameOf = (chain: unknown): string => Buffer.from(storedBytes(chain) ?? []).toString('hex')
