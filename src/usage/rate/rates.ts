/** What a request demands of limits a minute, and the error of a refusal (worker-rates.ts). */
import type { Cooling } from './rate.ts'
import type { RateTicket } from './rate-ticket.ts'

export interface RateDemand {
  account: string
  /** How many slots the request may use. */
  slots: number
  /**
   * The number of slots with which it is admitted if there are no more. It then takes what is there, and its excess is
   * debt. One such request of each limit runs at a time. Equal to `slots` if the request must have them all.
   */
  least: number
  /** How many slots the limit has, as far as this worker knows. */
  limit: number
}

/** What a worker knows of its earlier processes. */
export interface RatePast {
  /** Grows with each process of the worker. */
  run: number
  /** The first run whose uses are all known. */
  knownFrom: number
  /** Uses of earlier processes: when they are cold by the host's time, and how many. */
  uses: ReadonlyMap<string, readonly Cooling[]>
}

/** For a worker without earlier processes. */
export const noPast: RatePast = { run: 0, knownFrom: 0, uses: new Map() }

/** A refusal by a limit: it is used up, or the control plane cannot be asked. */
export class RateRefused extends Error {
  override readonly name = 'RateRefused'
  readonly account: string
  readonly reason: 'used' | 'unknown'
  /** Whole seconds after which a retry makes sense. */
  readonly retryAfter: number
  /** How many of the limit's slots unreachable workers hold. */
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
  /** Takes slots of all limits or of none, at once if the worker has them. Throws or rejects with `RateRefused`. */
  take(demands: readonly RateDemand[], signal: AbortSignal): RateTicket | Promise<RateTicket>
}
