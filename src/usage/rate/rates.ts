/** What a request asks of limits a minute, who answers, and what is said of a refusal (worker-rates.ts). */
import type { Cooling } from './rate.ts'
import type { RateTicket } from './rate-ticket.ts'

export interface RateDemand {
  account: string
  /** How many slots the request may use. */
  slots: number
  /**
   * With how many it is let through where there are no more: it then takes what there is, and what it uses beyond is
   * debt. Of each limit one such request runs at a time. As many as `slots` where the request must have them all.
   */
  least: number
  /** How many slots the limit has as this worker knows it. */
  limit: number
}

/** What a worker knows of its former processes. */
export interface RatePast {
  /** Grows with each process of the worker. */
  run: number
  /** The first run of which all uses are known. */
  knownFrom: number
  /** Uses of former processes: when they are cold by the host's time, and how many. */
  uses: ReadonlyMap<string, readonly Cooling[]>
}

/** Of a worker without former processes. */
export const noPast: RatePast = { run: 0, knownFrom: 0, uses: new Map() }

/** A limit that refuses: it is used up, or the control plane cannot be asked. */
export class RateRefused extends Error {
  override readonly name = 'RateRefused'
  readonly account: string
  readonly reason: 'used' | 'unknown'
  /** Whole seconds after which it makes sense to try again. */
  readonly retryAfter: number
  /** How many of the limit's slots are held by workers that do not answer. */
  readonly absent: number

  constructor(account: string, { reason, retryAfter, absent }: Pick<RateRefused, 'reason' | 'retryAfter' | 'absent'>) {
    super(`${account}: ${reason}`)
    this.account = account
    this.reason = reason
    this.retryAfter = retryAfter
    this.absent = absent
  }
}

export interface Rates {
  /** Takes slots of all limits or of none, at once where the worker has them. Throws or rejects with `RateRefused`. */
  take(demands: readonly RateDemand[], signal: AbortSignal): RateTicket | Promise<RateTicket>
}
