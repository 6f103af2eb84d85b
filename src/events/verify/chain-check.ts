/**
 * Follows one chain through its records and reports deviations (events/proof/README.md):
 *
 *  each record  its number is the next one; the digest is walked with it
 *  each digest  that the log names, at the end of a run and before the first record of a segment, is the walked one
 *  each signed  the digest and the digest of arrivals at a number are those of the checkpoint, so that a chain
 *  point        rewritten with matching digests is found too, and so is a truncated one
 *  the end      it is where the ledger says that the chain ends
 *
 * Where a named digest is not the walked one, both are walked on. The next named digest tells which was altered: the
 * records before, or the digest. So one alteration is one finding.
 */
import { ChainWalk } from '../log/chain.ts'
import type { ChainPoint } from '../proof/checkpoint.ts'
import { type FindingCode, Findings, finding } from './finding.ts'

interface ChainStatus {
  chain: string
  /** The point before the first record to read: a floor, a signed point or the chain's start. */
  from: ChainPoint
  /** The known points of the chain, in any order. */
  points: readonly ChainPoint[]
  /** Whether records before `from` are there and were left out. */
  begunLater: boolean
}

/** What the ledger names as a chain's end, whatever stands there. */
export interface NamedHead {
  seq: unknown
  digest: unknown
  updatedAt: unknown
}

/** A digest that is not the walked one. */
interface Doubt {
  from: number
  to: number
  /** Who named it: the log, or a checkpoint. */
  by: 'log' | 'checkpoint'
}

const anyTime = { at: 0, receivedAt: Number.POSITIVE_INFINITY }

export class ChainCheck {
  readonly findings = new Findings()
  readonly #chain: string
  readonly #points: ChainPoint[]
  readonly #first: number
  readonly #begunLater: boolean
  #seq: number
  /** The digest as walked; in doubt behind it the one that was named. Empty where it is unknown. */
  #walks: ChainWalk[]
  #doubt: Doubt | null = null
  /** Up to here the digests are right. */
  #sound: number
  /** Null where it is unknown. */
  #arrivals: ChainWalk | null
  #lastPoint: number
  #lastReceipt = anyTime
  records = 0

  constructor({ chain, from, points, begunLater }: ChainStatus) {
    this.#chain = chain
    this.#begunLater = begunLater
    this.#first = this.#seq = this.#lastPoint = this.#sound = from.seq
    this.#walks = [new ChainWalk(from.digest)]
    this.#arrivals = new ChainWalk(from.arrivals)
    this.#points = points.filter(({ seq }) => seq >= from.seq).toSorted((one, other) => one.seq - other.seq)
    this.#passPoints()
  }

  get first(): number {
    return this.#first
  }

  /** The number of the last record that was there. */
  get seq(): number {
    return this.#seq
  }

  /** Up to here checkpoints vouch for what is there. */
  get coveredTo(): number {
    return Math.max(this.#lastPoint, this.#points.at(-1)?.seq ?? 0)
  }

  /** The digest that the log names before record `seq`, the next one to come. */
  before(seq: number, digest: string): void {
    if (seq <= this.#seq) return
    this.#reach(seq - 1)
    this.named(digest)
  }

  /** The next record; `arrival` is its text for the digest of arrivals. False where it has no place in the chain. */
  record(seq: number, body: Uint8Array, arrival: string): boolean {
    if (seq <= this.#seq) {
      if (!this.#begunLater || seq > this.#first) this.found('event.inserted', seq, seq)
      return false
    }
    this.#reach(seq - 1)
    this.records += 1
    for (const walk of this.#walks) walk.step(seq, body)
    this.#arrivals?.step(seq, arrival)
    this.#seq = seq
    this.#passPoints()
    return true
  }

  /** Records up to `to` cannot be read. */
  unreadable(to: number): void {
    if (to <= this.#seq) return
    this.#skip(to)
  }

  /** The digest that the log names after the last record. */
  named(digest: string): void {
    this.#witness(digest, 'log')
  }

  /** When the last record happened, and when its segment's newest was received. */
  received(at: number, receivedAt: number): void {
    this.#lastReceipt = { at, receivedAt }
  }

  /** Retention has removed records up to a point since the reading began. */
  resume(floor: ChainPoint): void {
    if (floor.seq <= this.#seq) return
    this.#settle(null)
    this.#seq = this.#sound = this.#lastPoint = floor.seq
    this.#walks = [new ChainWalk(floor.digest)]
    this.#arrivals = new ChainWalk(floor.arrivals)
    while (this.#points.length > 1 && (this.#points[0]?.seq ?? 0) < floor.seq) this.#points.shift()
  }

  /** After the last record; `head` is what the ledger names as the chain's end. */
  end(head: NamedHead | null): void {
    const last = this.#seq
    if (head === null) {
      if (this.records > 0) this.found('chain.unknown', this.#first + 1, last)
    } else if (this.#isAltered(head, last)) this.found('chain.head_altered', last, last)
    const named = Number.isSafeInteger(head?.seq) ? Number(head?.seq) : 0
    this.#reach(Math.max(named, this.#points.at(-1)?.seq ?? 0))
    this.#settle(null)
  }

  found(what: FindingCode, from: number | null, to: number | null, eventId: string | null = null): void {
    this.findings.add(finding(what, { chain: this.#chain, from, to, event_id: eventId }))
  }

  #isAltered({ seq, digest, updatedAt }: NamedHead, last: number): boolean {
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || typeof digest !== 'string' || seq < last) return true
    // A head beyond the last record names the missing ones. It is right if those are the problem.
    if (seq > last) return false
    const walk = this.#walks.find((each) => each.digest === digest)
    if (this.#walks.length > 0 && walk === undefined) return true
    if (walk !== undefined) this.#settle(walk)
    const { at, receivedAt } = this.#lastReceipt
    return this.records > 0 && !(typeof updatedAt === 'number' && updatedAt >= at && updatedAt <= receivedAt)
  }

  /** Everything up to `to` must have come. */
  #reach(to: number): void {
    if (to <= this.#seq) return
    this.found('events.missing', this.#seq + 1, to)
    this.#skip(to)
  }

  #skip(to: number): void {
    this.#settle(null)
    this.#lastReceipt = anyTime
    this.#seq = to
    this.#walks = []
    this.#arrivals = null
    this.#passPoints()
  }

  #witness(digest: string, by: Doubt['by']): void {
    const walk = this.#walks.find((each) => each.digest === digest)
    if (this.#walks.length === 0) this.#sound = this.#seq
    else if (walk !== undefined) this.#settle(walk)
    else {
      const walked = this.#walks[0]
      this.#settle(null)
      this.#doubt = { from: this.#sound + 1, to: this.#seq, by }
      if (walked !== undefined) this.#walks = [walked, new ChainWalk(digest)]
      return
    }
    this.#sound = this.#seq
    this.#walks = [walk ?? new ChainWalk(digest)]
  }

  /** Ends a doubt, once it is known which digest was right; null where that stays unknown. */
  #settle(right: ChainWalk | null): void {
    const doubt = this.#doubt
    if (doubt === null) return
    this.#doubt = null
    const { from, to, by } = doubt
    if (by === 'checkpoint' && right !== this.#walks[1]) this.found('events.rewritten', this.#lastPoint + 1, to)
    else if (right !== null && right === this.#walks[0]) this.found('event.digest_altered', to, to)
    else this.found('event.altered', Math.min(from, to), to)
    this.#sound = to
    if (by === 'checkpoint') this.#lastPoint = to
  }

  /** Compares with what was signed for the present number. */
  #passPoints(): void {
    for (;;) {
      const point = this.#points[0]
      if (point === undefined || point.seq > this.#seq) return
      if (point.seq === this.#seq) this.#compare(point)
      if (this.#points.length === 1) return
      this.#points.shift()
    }
  }

  #compare({ seq, digest, arrivals }: ChainPoint): void {
    this.#witness(digest, 'checkpoint')
    if (this.#arrivals !== null && this.#arrivals.digest !== arrivals) {
      this.found('events.arrival_altered', Math.min(this.#lastPoint + 1, seq), seq)
    }
    this.#arrivals = new ChainWalk(arrivals)
    if (this.#doubt === null) this.#lastPoint = seq
  }
}
