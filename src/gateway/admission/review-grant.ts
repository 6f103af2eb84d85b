/**
 * A reviewer's leave for one token to send one request once (escalations/README.md). Which leave there is stands in the
 * state; that it is used once, on whatever gateway, is an account of limit 1 (usage/lease/README.md rule 1). What is
 * held of it is booked with the outcome, or given back where nothing was sent.
 */
import type { Event, Verdict } from '../../events/event.ts'
import type { Said, StageOutcome } from '../../policies/stages/run-stage.ts'
import { stronger } from '../../policies/verdict.ts'
import { UsageRefused } from '../../usage/allowance.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { digestOf } from '../policy/decisions.ts'

/** Holds the grant for this request, where there is one; true where the exchange has one. Waits only where it must. */
export function useGrant(exchange: Exchange, gateway: Gateway): boolean | Promise<boolean> {
  if (exchange.grant !== null) return true
  const { worker, clock } = gateway
  const grant = worker.view.grant(required(exchange.token).id, digestOf(exchange, gateway), clock.now())
  return grant === null ? false : hold(exchange, gateway, grant.id)
}

async function hold(exchange: Exchange, { worker }: Gateway, id: string): Promise<boolean> {
  try {
    const demands = [{ account: `grant/${id}`, want: 1, min: 1 }]
    const reservation = await worker.allowances.reserve(demands, exchange.abort.signal)
    if (exchange.settled !== null) {
      // Its caller left while it waited: nobody will settle what comes now.
      reservation.release()
      return false
    }
    exchange.grant = { id, reservation }
    return true
  } catch (error) {
    if (error instanceof UsageRefused) return false
    throw error
  }
}

/** What a stage came to, the granted policy's verdict being allow. */
export function withGrant(outcome: StageOutcome, granted: Said): StageOutcome {
  const { targets } = granted.decision
  const allowed: Said = { ...granted, decision: { verdict: 'allow', reasonCode: 'escalation.granted', targets } }
  const said = outcome.said.map((each) => (each === granted ? allowed : each))
  const enforced = said.filter(({ policy }) => policy.enforced)
  const verdict = enforced.reduce<Verdict>((strongest, { decision }) => stronger(strongest, decision.verdict), 'allow')
  const decisive = enforced.find(({ decision }) => decision.verdict === verdict && verdict !== 'allow') ?? null
  return { ...outcome, said, verdict, decisive }
}

/** Books the grant where the exchange was sent, in the tick in which its outcome is written; otherwise gives it back. */
export function settleGrant({ grant, opened }: Exchange, event: Event): void {
  if (grant === null) return
  const { reservation } = grant
  if (opened) event.settlements = [...(event.settlements ?? []), ...reservation.book(reservation.held)]
  else reservation.release()
}

/** What a restart books of a grant that was held: it counts as used. */
export function keepGrant({ grant }: Exchange, event: Event): void {
  if (grant !== null) event.settlements = [...(event.settlements ?? []), ...grant.reservation.held]
}
