/**
 * What tokens have used, with or without limits: dispatched requests and their cost. Counted in the transaction that
 * ingests the outcomes. No limit is decided by these sums, since a limit counts from when it was set.
 */
import type { Event } from '../events/event.ts'
import { toNano } from '../lib/money.ts'
import type { Statement } from '../store/statement.ts'
import { maxAmount } from './lease/lease.ts'

/** Empty if no event is the outcome of a dispatched request. */
export function totalStatements(events: readonly Event[]): Statement[] {
  const sums = new Map<string, { token: string; requests: number; spend: number }>()
  for (const { event_type: type, event_attribution: who, details, event_cost_attribution: cost } of events) {
    if (type !== 'gateway.request.outcome' || details?.dispatched !== true || who.token_id === null) continue
    const sum = sums.get(who.token_id) ?? { token: who.token_id, requests: 0, spend: 0 }
    sums.set(who.token_id, sum)
    sum.requests += 1
    sum.spend = Math.min(sum.spend + Math.max(0, toNano(cost?.cost ?? 0)), maxAmount)
  }
  if (sums.size === 0) return []
  return [
    {
      sql: `insert into usage_totals (account_id, requests, spend)
        select t.account_id, sum(value ->> 'requests'), min(sum(value ->> 'spend'), ${maxAmount})
        from json_each(?) join tokens t on t.id = value ->> 'token' where t.account_id is not null group by t.account_id
        on conflict (account_id) do update set requests = requests + excluded.requests,
          spend = min(spend + excluded.spend, ${maxAmount})`,
      args: [JSON.stringify([...sums.values()])],
    },
  ]
}
