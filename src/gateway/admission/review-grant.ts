/**
 * A reviewer's grant: one token may send one request once (escalations/README.md). The grant is a record of the state.
 * An account with a limit of 1 ensures single use across gateways (usage/lease/README.md rule 1). The reservation is
 * booked with the outcome, or released when nothing was sent. A call of an MCP tool may take several rounds: each hands
 * the grant on to the next (`mcp/modern/request-state.ts`), and each use has an account of its own.
 */
import type { Event, Verdict } from '../../events/event.ts'
import type { PolicyEvaluation, StageOutcome } from '../../policies/stages/run-stage.ts'
import { stronger } from '../../policies/verdict.ts'
import { UsageRefused } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { digestOf } from '../policy/request-digest.ts'

/** Reserves the grant for this request, if there is one. True when the exchange has a grant. Waits only for a lease. */
export function reserveGrant(exchange: Exchange, gateway: Gateway): boolean | Promise<boolean> {
  if (exchange.grant !== null) return true
  if (exchange.shadowed !== null) return false
  const { worker, clock } = gateway
  const grants = worker.view.grants(required(exchange.token).id, digestOf(exchange, gateway), clock.now())
  const carried = exchange.mcp?.state?.grant ?? null
  if (grants.length === 0 && carried === null) return false
  const ids = grants.map(({ id }) => id)
  return holdOne(exchange, gateway, carried === null ? ids : [carried, ...ids])
}

/** The same request may have been granted several times: each grant that is used up gives way to the next. */
async function holdOne(exchange: Exchange, gateway: Gateway, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) if (await hold(exchange, gateway, id)) return true
  return false
}

async function hold(exchange: Exchange, { worker }: Gateway, id: string): Promise<boolean> {
  try {
    const demands = [{ account: `grant/${id}`, want: 1, min: 1 }]
    const reservation = await worker.usageLimits.reserve(demands, exchange.call.abort.signal)
    if (exchange.outcomeCommitted !== null) {
      // The client disconnected during the wait, so nothing would release the reservation later.
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

/** The stage outcome with the verdict of the granted policy changed to allow. */
export function withGrant(outcome: StageOutcome, granted: PolicyEvaluation): StageOutcome {
  const { targets } = granted.decision
  const allowed: PolicyEvaluation = {
    ...granted,
    decision: { verdict: 'allow', reasonCode: 'escalation.granted', targets },
  }
  const said = outcome.evaluations.map((each) => (each === granted ? allowed : each))
  const enforced = said.filter(({ policy }) => policy.enforced)
  const verdict = enforced.reduce<Verdict>((strongest, { decision }) => stronger(strongest, decision.verdict), 'allow')
  const decisive = enforced.find(({ decision }) => decision.verdict === verdict && verdict !== 'allow') ?? null
  return { ...outcome, evaluations: said, verdict, decisive }
}

/** Books the grant when the request was sent, in the tick in which its outcome is written; otherwise releases it. */
export function bookGrant({ grant, opened }: Exchange, event: Pick<Event, 'settlements'>): void {
  if (grant === null) return
  const { reservation } = grant
  if (opened) event.settlements = [...(event.settlements ?? []), ...reservation.book(reservation.held)]
  else reservation.release()
}

/** What recovery books for a reserved grant: it counts as used. */
export function bookInterruptedGrant({ grant }: Exchange, event: Pick<Event, 'settlements'>): void {
  if (grant !== null) event.settlements = [...(event.settlements ?? []), ...grant.reservation.held]
}
