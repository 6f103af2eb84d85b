/** Reads what the spend of a request is attributed to, for its record and its limits (usage/README.md, Attribution). */
import { attribute } from '../../usage/attribution/dimension.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

/** Throws `attribution_refused` for a value that is missing and required, not allowed, or too long. */
export function attributeSpend(exchange: Exchange, { worker }: Gateway): void {
  const { dimensions } = worker.view.limits
  if (dimensions.length === 0) return
  const { request, parsed, workload } = exchange
  exchange.attributed = attribute(dimensions, {
    headers: request.headers,
    body: parsed,
    token: required(exchange.token),
    claims: workload === null ? null : workload.claims,
  })
}
