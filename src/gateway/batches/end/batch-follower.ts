/**
 * Follows batches to their end and settles them (usage/batches/README.md). Which ones, the control plane says: it knows
 * the batches of this gateway that are open, whoever made them, also after a crash. A batch whose end a caller's request
 * shows is settled at once, on any gateway.
 */
import { type BatchUse, mostAtOnce, type OpenBatch } from '../../../usage/batches/batch-protocol.ts'
import type { FollowedBatches, Gateway } from '../../context.ts'
import { lookAtBatch } from './look-at-batch.ts'
import { isFinal } from './open-batch.ts'

/** Milliseconds between two questions to the control plane: while batches are followed, and otherwise. */
const busyMs = 5000
const idleMs = 300_000
/** Milliseconds from the start to the first question. */
const startMs = 5000
/** Milliseconds until a batch that was just made is asked for: its outcome must reach the ledger first. */
const soonMs = 1500
/** Milliseconds between two looks at one batch: at first, and at most. They grow with its age. */
const firstWait = 2000
const longestWait = 120_000
/** Looks at once. */
const looksAtOnce = 4
/** The most settled batches that are remembered, so that nobody's question reads their output again. */
const mostRemembered = 10_000
/** The control plane may not know of a batch yet: what it used is said again for this long, in milliseconds. */
const saidForMs = 3_600_000
/** After this time nothing more is expected of a batch, in milliseconds. */
const givenUpMs = 72 * 3_600_000

interface Followed {
  readonly batch: OpenBatch
  /** Monotonic. */
  nextAt: number
}

export class BatchFollower implements FollowedBatches {
  readonly #gateway: () => Gateway
  readonly #followed = new Map<string, Followed>()
  /** What ended batches used, until the control plane has it; with when it became known, monotonic. */
  readonly #uses = new Map<string, { use: BatchUse; since: number }>()
  /** Batches that are settled, the latest last. */
  readonly #settled = new Set<string>()
  readonly #abort = new AbortController()
  #timer: Timer | null = null
  #due = Number.POSITIVE_INFINITY
  #running: Promise<void> | null = null

  /** The gateway is asked for when it is first needed, because it has this follower. */
  constructor(gateway: () => Gateway) {
    this.#gateway = gateway
  }

  start(): void {
    this.#askIn(startMs)
  }

  made(): void {
    this.#askIn(soonMs)
  }

  seen(batch: OpenBatch, status: unknown): void {
    const { hold } = batch
    if (this.#settled.has(hold) || this.#uses.has(hold) || (status !== null && !isFinal(status))) return
    const known = this.#followed.get(hold)
    if (known === undefined) this.#followed.set(hold, { batch, nextAt: Number.NEGATIVE_INFINITY })
    else known.nextAt = Number.NEGATIVE_INFINITY
    this.#askIn(0)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#due = Number.NEGATIVE_INFINITY
    this.#abort.abort()
  }

  /** Looks at what is due, and tells the control plane. Runs of it do not overlap. */
  #runOnce(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#gateway()
    await this.#look()
    await this.#say()
    // What is new here is due at once.
    await this.#look()
    if (this.#uses.size > 0) await this.#say()
    const now = clock.monotonic()
    for (const [hold, { since }] of this.#uses) if (since < now - saidForMs) this.#uses.delete(hold)
    this.#askIn(this.#followed.size + this.#uses.size > 0 ? busyMs : idleMs)
  }

  async #look(): Promise<void> {
    const { clock } = this.#gateway()
    const now = clock.monotonic()
    const due = [...this.#followed.values()].filter(({ nextAt }) => nextAt <= now)
    for (let from = 0; from < due.length; from += looksAtOnce) {
      await Promise.all(due.slice(from, from + looksAtOnce).map((each) => this.#lookAt(each)))
    }
  }

  async #lookAt(followed: Followed): Promise<void> {
    const gateway = this.#gateway()
    const { clock, log } = gateway
    const { batch } = followed
    const age = Math.max(0, clock.now() - batch.created_at)
    followed.nextAt = clock.monotonic() + Math.min(longestWait, Math.max(firstWait, age / 10))
    try {
      const use = await lookAtBatch(batch, gateway, { signal: this.#abort.signal, isLast: age > givenUpMs })
      if (use === null || this.#abort.signal.aborted) return
      this.#followed.delete(batch.hold)
      this.#uses.set(batch.hold, { use, since: clock.monotonic() })
    } catch (error) {
      // The provider is out of reach, or its output broke off: the next look decides.
      log.debug({ hold: batch.hold, error: String(error) }, 'A batch could not be looked at')
    }
  }

  async #say(): Promise<void> {
    const { worker, clock, log } = this.#gateway()
    try {
      const uses = [...this.#uses.values()].slice(0, mostAtOnce).map(({ use }) => use)
      const { open, settled } = await worker.batches.sync(uses)
      for (const hold of settled) this.#remember(hold)
      for (const batch of open) {
        if (this.#settled.has(batch.hold) || this.#uses.has(batch.hold) || this.#followed.has(batch.hold)) continue
        this.#followed.set(batch.hold, { batch, nextAt: clock.monotonic() })
      }
    } catch (error) {
      log.debug({ error: String(error) }, 'Batches could not be settled yet')
    }
  }

  #remember(hold: string): void {
    this.#uses.delete(hold)
    this.#followed.delete(hold)
    this.#settled.add(hold)
    for (const oldest of this.#settled) {
      if (this.#settled.size <= mostRemembered) break
      this.#settled.delete(oldest)
    }
  }

  #askIn(milliseconds: number): void {
    const at = performance.now() + milliseconds
    if (this.#abort.signal.aborted || (this.#timer !== null && this.#due <= at)) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#due = at
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#runOnce()
    }, milliseconds)
    this.#timer.unref()
  }
}
