/** How the tests of rates ask for slots of one limit. */
import type { RateTicket } from '../rate/rate-ticket.ts'
import { type RateDemand, RateRefused } from '../rate/rates.ts'
import { type Fate, promptly, SlotWorld } from './slots.ts'

export const account = 'group/g/requests'
export const tokens = 'group/g/tokens'
export const one = (limit: number): RateDemand => ({ account, slots: 1, least: 1, limit })
export const never = new AbortController().signal
export const world = (limit: number, fate: () => Fate = () => promptly) => new SlotWorld(new Map([['g', limit]]), fate)

/** Asks for one slot; says when it was given, or why not. What is given is in the journal before it counts. */
export function attempt(inside: SlotWorld, worker: string, demands: readonly RateDemand[], passed: number[]) {
  const result: { ticket: RateTicket | null; refused: RateRefused | null } = { ticket: null, refused: null }
  const process = inside.workers.get(worker)
  const took = (ticket: RateTicket) => {
    // A process that was killed meanwhile dispatches nothing.
    if (inside.workers.get(worker) !== process) return
    result.ticket = ticket
    inside.record(worker, ticket.uses())
    passed.push(inside.now)
  }
  const refused = (thrown: unknown) => {
    if (!(thrown instanceof RateRefused)) throw thrown
    result.refused = thrown
  }
  try {
    const taken = process?.take(demands, never)
    if (taken instanceof Promise) taken.then(took, refused)
    else if (taken !== undefined) took(taken)
  } catch (thrown) {
    refused(thrown)
  }
  return result
}
