/**
 * Keeps what a batch holds, in the transaction that appends the outcome of the request that made it and books its
 * settlements (settlement-statements.ts). Only what the worker had an account for can come back.
 */
import type { LogRecord } from '../../events/log/record.ts'
import type { Statement } from '../../store/statement.ts'
import { sumByAccount } from '../settlement-statements.ts'
import { madeBatchSchema } from './batch-protocol.ts'

/** Run after the settlements are booked. Empty if no record made a batch. */
export const holdStatements = (worker: string, records: readonly LogRecord[], now: number): Statement[] =>
  records.flatMap((record) => {
    const made = record.details?.batch
    const { event_type: type, exchange_id: id, event_attribution: who, request_id: requestId } = record
    if (made === undefined || type !== 'gateway.request.outcome' || id === undefined) return []
    const batch = madeBatchSchema.safeParse(made)
    if (!batch.success) return []
    const held = [...sumByAccount(record.settlements ?? [])].map(([account, amount]) => ({ account, amount }))
    return [
      {
        sql: `insert into batch_holds (id, gateway_id, token_id, attribution, request_id, batch, created_at, held)
          select ?1, ?2, ?3, ?4, ?5, ?6, ?7, (
            select json_group_array(json(value)) from json_each(?8) where exists (
              select 1 from lease_balances where worker = ?9 and account = value ->> 'account'))
          where true on conflict (id) do nothing`,
        args: [
          id,
          worker.split('/')[0] ?? '',
          who.token_id,
          JSON.stringify(who),
          requestId,
          JSON.stringify(batch.data),
          now,
          JSON.stringify(held),
          worker,
        ],
      },
    ]
  })
