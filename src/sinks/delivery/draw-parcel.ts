/**
 * Draws the next parcel of a sink from the log: records by position, as many as its receiver takes at once. Records that
 * the filter leaves out are passed over; where the parcel is proved, their digests stand in the proof.
 */
import { logOf } from '../../events/engine/log-of.ts'
import type { Condition } from '../../inspection/condition.ts'
import type { Reader } from '../../store/open.ts'
import { itemsOf } from '../formats/items.ts'
import { ProofOfParcel, type Proofs } from '../formats/proof.ts'
import type { Item, Parcel, SinkKind } from '../sink.ts'
import type { SinkFormat } from '../sink-resource.ts'

interface Draw {
  format: SinkFormat
  filter: Condition | null
  most: SinkKind['most']
  /** Null where parcels are not proved. */
  proofs: Proofs | null
}

/** The position to begin with; where the parcel ends that was sent before, or null; where the log ends. */
interface Range {
  from: number
  plannedEnd: number | null
  before: number
}

export interface Drawn {
  parcel: Parcel
  /** More was there than fits. */
  full: boolean
  /** Where the log goes on, if retention has removed the record at `from`. */
  goesOnAt: number | null
  /** For a second proof, of a parcel whose items were in part refused. */
  proof: ProofOfParcel | null
}

/** A parcel passes over so many records at most: its cursor moves although nothing passes the filter. */
const mostRecords = 50_000

export async function drawParcel(
  ledger: Reader,
  { format, filter, most, proofs }: Draw,
  { from, plannedEnd, before }: Range,
): Promise<Drawn> {
  const items: Item[] = []
  const proof = proofs === null ? null : new ProofOfParcel(proofs, from)
  const end = plannedEnd ?? before
  let next = from
  let bytes = 0
  let full = false
  let goesOnAt: number | null = null
  for await (const record of logOf(ledger).chained({ from, before: end })) {
    if (record.position > next) {
      if (next === from) goesOnAt = record.position
      break
    }
    const drawn = itemsOf(record, format, filter)
    const size = drawn.reduce((sum, { json }) => sum + json.length, 0)
    const isMore = items.length + drawn.length > most.items || bytes + size > most.bytes || next - from >= mostRecords
    if (plannedEnd === null && next > from && isMore) {
      full = true
      break
    }
    proof?.add(record, drawn.length > 0)
    items.push(...drawn)
    bytes += size
    next = record.position + (record.damaged?.records ?? 1)
  }
  const parcel = { first: from, next, items, proof: proof === null ? null : await proof.text(next) }
  return { parcel, full, goesOnAt, proof }
}
