/**
 * Follows one chain through its rows and reports deviations (events/proof/README.md):
 *
 *  each row     its digest follows from the one before and its body; its columns agree with its body; its number is
 *               the next one; its position is behind the one before
 *  each signed  the digest and the digest of arrivals at a number are those of the checkpoint, so that a chain
 *  point        rewritten with matching digests is found too, and so is a truncated one
 *  the end      it is where the ledger says that the chain ends
 *
 * After a deviation it continues from what is there, so that one alteration is one finding.
 */
import { chainNext } from '../log/chain.ts'
import { arrivalsNext } from './arrivals.ts'
import type { ChainPoint } from './checkpoint.ts'
import { type FindingCode, Findings, finding } from './verify-finding.ts'
import { alteredColumns, type EventRow, recordedProofFailure } from './verify-row.ts'

interface ChainStatus {
  chain: string
  /** The point before the first row: a floor, a signed point or the chain's start. */
  from: ChainPoint
  /** The known points of the chain, in any order. */
  points: readonly ChainPoint[]
}

/** What the ledger names as a chain's end, whatever stands there. */
export interface NamedHead {
  seq: unknown
  digest: unknown
  updated_at: unknown
}

export class ChainCheck {
  readonly findings = new Findings()
  readonly #chain: string
  readonly #points: ChainPoint[]
  readonly #first: number
  #seq: number
  /** The possible digests of the last row: if it did not follow, the stored one and the computed one. */
  #digests: readonly string[] | null
  /** The row whose digest did not follow, until the next one shows which of body and digest was altered. */
  #doubt: { seq: number; eventId: string | null; computed: string } | null = null
  #arrivals: string | null
  #lastPoint: number
  #position: bigint | null = null
  #receivedAt: number | null = null
  events = 0

  constructor({ chain, from, points }: ChainStatus) {
    this.#chain = chain
    this.#first = from.seq
    this.#seq = this.#lastPoint = from.seq
    this.#digests = [from.digest]
    this.#arrivals = from.arrivals
    this.#points = points.filter(({ seq }) => seq >= from.seq).toSorted((one, other) => one.seq - other.seq)
    this.#passPoints()
  }

  /** The number of the last event that was there. */
  get seq(): number {
    return this.#seq
  }

  /** Rows in the order of their numbers. */
  row(row: EventRow): void {
    this.events += 1
    const { body } = row
    const { seq, digest, received_at: receivedAt } = row.cells
    const eventId = typeof row.cells.event_id === 'string' ? row.cells.event_id : null
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq <= this.#seq) {
      const at = Number.isSafeInteger(seq) ? Number(seq) : null
      this.#found('event.inserted', at, at, eventId)
      return
    }
    if (seq > this.#seq + 1) this.#missing(seq - 1)
    this.#digest(seq, eventId, body, digest)
    for (const column of alteredColumns(this.#chain, row)) {
      this.findings.add(
        finding('event.column_altered', { chain: this.#chain, from: seq, to: seq, event_id: eventId, column }),
      )
    }
    const trouble = recordedProofFailure(this.#chain, row)
    if (trouble !== null) this.#found(trouble, seq, seq, eventId)
    const position = BigInt(row.position)
    if (this.#position !== null && position <= this.#position) this.#found('event.out_of_order', seq, seq, eventId)
    this.#position = position
    this.#receivedAt = typeof receivedAt === 'number' ? receivedAt : null
    this.#seq = seq
    if (this.#arrivals !== null) this.#arrivals = arrivalsNext(this.#arrivals, seq, row.arrival)
    this.#passPoints()
  }

  /** After the last row; `head` is what the ledger names as the chain's end. */
  end(head: NamedHead | null): void {
    const last = this.#seq
    const named = Number.isSafeInteger(head?.seq) ? Number(head?.seq) : 0
    const signed = this.#points.at(-1)?.seq ?? 0
    if (Math.max(named, signed) > last) this.#missing(Math.max(named, signed))
    const digests = this.#digests
    if (this.#doubt !== null && typeof head?.digest === 'string' && head.seq === last) this.#resolve(head.digest)
    this.#settleDoubt('event.altered')
    if (head === null) {
      if (this.events > 0) this.#found('chain.unknown', this.#first + 1, last, null)
    } else if (this.#headAltered(head, last, digests)) this.#found('chain.head_altered', last, last, null)
  }

  #headAltered(
    { seq, digest, updated_at: updatedAt }: NamedHead,
    last: number,
    digests: readonly string[] | null,
  ): boolean {
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || typeof digest !== 'string' || seq < last) return true
    // A head beyond the last row names the missing ones. It is right if those are the problem.
    if (seq > last) return false
    return !(digests?.includes(digest) ?? true) || (this.#receivedAt !== null && updatedAt !== this.#receivedAt)
  }

  #digest(seq: number, eventId: string | null, body: Uint8Array | null, digest: unknown): void {
    const stored = typeof digest === 'string' ? digest : ''
    if (body === null) {
      this.#settleDoubt('event.altered')
      this.#found('event.altered', seq, seq, eventId)
      this.#digests = [stored]
      return
    }
    const before = this.#digests
    // Behind a gap it is unknown what the digest follows from. The next signed point tells.
    if (before === null) {
      this.#digests = [stored]
      return
    }
    const follows = before.find((previous) => chainNext(previous, seq, body) === stored)
    if (follows !== undefined) {
      this.#resolve(follows)
      this.#digests = [stored]
      return
    }
    this.#settleDoubt('event.altered')
    const computed = chainNext(before.at(-1) ?? '', seq, body)
    this.#doubt = { seq, eventId, computed }
    this.#digests = [computed, stored]
  }

  /** The row after the doubtful one follows from this digest of it. */
  #resolve(digest: string): void {
    this.#settleDoubt(this.#doubt?.computed === digest ? 'event.digest_altered' : 'event.altered')
  }

  #settleDoubt(what: FindingCode): void {
    const doubt = this.#doubt
    this.#doubt = null
    if (doubt !== null) this.#found(what, doubt.seq, doubt.seq, doubt.eventId)
  }

  #missing(to: number): void {
    this.#found('events.missing', this.#seq + 1, to, null)
    this.#digests = null
    this.#arrivals = null
    this.#settleDoubt('event.altered')
  }

  /** Compares with what was signed for the present number. */
  #passPoints(): void {
    for (;;) {
      const [point] = this.#points
      if (point === undefined || point.seq > this.#seq) return
      if (point.seq === this.#seq) this.#compare(point)
      if (this.#points.length === 1) return
      this.#points.shift()
    }
  }

  #compare({ seq, digest, arrivals }: ChainPoint): void {
    const from = Math.min(this.#lastPoint + 1, seq)
    if (this.#digests !== null && !this.#digests.includes(digest)) this.#found('events.rewritten', from, seq, null)
    if (this.#arrivals !== null && this.#arrivals !== arrivals) this.#found('events.arrival_altered', from, seq, null)
    this.#arrivals = arrivals
    this.#lastPoint = seq
  }

  #found(what: FindingCode, from: number | null, to: number | null, eventId: string | null): void {
    this.findings.add(finding(what, { chain: this.#chain, from, to, event_id: eventId }))
  }
}
