/**
 * The control plane's side of batches (usage/batches/README.md): which gateway follows which batch, and what a batch
 * that ended gives back. A batch is settled in one transaction, with its event, and only once: whoever comes second
 * finds it settled.
 */
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import { attributionSchema, type CostAttribution, type Event } from '../../events/event.ts'
import type { Recorder } from '../../events/recorder.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { countsMoney } from '../account-name.ts'
import { maxAmount, plainName } from '../lease/lease.ts'
import { type BatchesReply, type BatchUse, type MadeBatch, madeBatchSchema, mostAtOnce } from './batch-protocol.ts'

export interface BatchHoldsOptions {
  state: Database
  ledger: Database
  recorder(): Recorder
  clock: Clock
  newId: NewId
  /** Something came back to these accounts, by plain name. */
  onReturned(accounts: readonly string[]): void
}

/** How long a worker follows a batch before another one may. It asks again twice as often. */
const claimMs = 120_000
/** How long a settled batch is remembered, to recognise who asks late. */
const keptMs = 30 * 86_400_000

interface Held {
  account: string
  amount: number
}

interface HoldRow {
  attribution: string
  request_id: string | null
  batch: string
  held: string
  settled_at: number | null
}

/** What comes back of each account that was charged: what a batch held, less what it used. Negative: it used more. */
export const returnsOf = (
  held: readonly Held[],
  { whole, cost, requests }: Pick<BatchUse, 'whole' | 'cost' | 'requests'>,
) =>
  held.map(({ account, amount }) => {
    const used = whole ? amount : Math.min(countsMoney(account) ? (cost ?? 0) : requests, maxAmount)
    return { account, amount: amount - used }
  })

export class BatchHolds {
  readonly #options: BatchHoldsOptions

  constructor(options: BatchHoldsOptions) {
    this.#options = options
  }

  /** Settles what ended, and gives the worker of a gateway the batches that it is to follow. */
  async sync(worker: string, gatewayId: string, uses: readonly BatchUse[]): Promise<BatchesReply> {
    const settled: string[] = []
    for (const use of uses) if (await this.#settle(gatewayId, use)) settled.push(use.hold)
    return { open: await this.#claim(worker, gatewayId), settled }
  }

  async #claim(worker: string, gatewayId: string): Promise<BatchesReply['open']> {
    const { ledger, clock } = this.#options
    const now = clock.now()
    const rows = await ledger.read<{ id: string; batch: string; created_at: number }>(
      `select id, batch, created_at from batch_holds where gateway_id = ?1 and settled_at is null
        and (claimed_by = ?2 or claimed_until < ?3) order by claimed_until limit ${mostAtOnce}`,
      [gatewayId, worker, now],
    )
    if (rows.length === 0) return []
    await ledger.write([
      {
        sql: 'update batch_holds set claimed_by = ?, claimed_until = ? where id in (select value from json_each(?))',
        args: [worker, now + claimMs, JSON.stringify(rows.map(({ id }) => id))],
      },
    ])
    return rows.map(({ id, batch, created_at }) => ({ ...readBatch(batch), hold: id, created_at }))
  }

  /** Whether it is settled, now or since earlier; false for what the ledger does not know. */
  async #settle(gatewayId: string, use: BatchUse): Promise<boolean> {
    const { ledger, recorder, clock } = this.#options
    const [row] = await ledger.read<HoldRow>(
      'select attribution, request_id, batch, held, settled_at from batch_holds where id = ?',
      [use.hold],
    )
    if (row === undefined) return false
    if (row.settled_at !== null) return true
    const held: Held[] = JSON.parse(row.held)
    const returns = returnsOf(held, use)
    const event = await this.#eventOf(gatewayId, row, use, returns)
    const now = clock.now()
    try {
      await recorder().change({
        event,
        state: [],
        ledger: [
          ...settleStatements(use, returns, { now, tokenId: event.event_attribution.token_id }),
          ...pendingRollups([event], now),
        ],
      })
    } catch (error) {
      if (error instanceof Failure && error.code === 'conflict') return true
      throw error
    }
    this.#options.onReturned([...new Set(returns.map(({ account }) => plainName(account)))])
    return true
  }

  async #eventOf(gatewayId: string, row: HoldRow, use: BatchUse, returns: readonly Held[]): Promise<Event> {
    const { state, clock, newId } = this.#options
    const batch = readBatch(row.batch)
    const { hold, status, requests, whole, notes } = use
    const event = controlPlaneEvent({
      type: 'usage.batch_settled',
      principal: { ...anonymous, name: 'usage' },
      requestId: row.request_id ?? '',
      details: {
        ...{ hold, status, requests, whole, notes, gateway_id: gatewayId },
        ...{ model: batch.model, provider: batch.provider, lines: batch.lines, returned: returns },
      },
      configVersion: await versionNow(state),
      clock,
      newId,
    })
    return {
      ...event,
      event_attribution: attributionSchema.parse(JSON.parse(row.attribution)),
      event_cost_attribution: costOf(batch, use),
    }
  }
}

const readBatch = (json: string): MadeBatch => madeBatchSchema.parse(JSON.parse(json))

const costOf = ({ provider, model, spend_owner }: MadeBatch, use: BatchUse): CostAttribution => ({
  currency: 'USD',
  cost: use.cost === null ? null : fromNano(use.cost),
  estimated: use.estimated,
  input_tokens: use.input_tokens,
  output_tokens: use.output_tokens,
  cached_input_tokens: use.cached_input_tokens,
  reasoning_tokens: use.reasoning_tokens,
  provider,
  model,
  price_source: use.price_source,
  spend_owner,
})

function settleStatements(
  { hold, requests, cost }: BatchUse,
  returns: readonly Held[],
  { now, tokenId }: { now: number; tokenId: string | null },
): Statement[] {
  const list = JSON.stringify(returns)
  return [
    {
      sql: `insert into guards (holds) select 0 where not exists (
        select 1 from batch_holds where id = ? and settled_at is null)`,
      args: [hold],
    },
    { sql: 'update batch_holds set settled_at = ? where id = ?', args: [now, hold] },
    { sql: 'delete from batch_holds where settled_at < ?', args: [now - keptMs] },
    {
      sql: `insert into batch_returns (account, amount) select value ->> 'account', value ->> 'amount' from json_each(?)
        where true on conflict (account) do update set amount = amount + excluded.amount`,
      args: [list],
    },
    {
      sql: `update usage_accounts set settled = max(0, min(settled - (value ->> 'amount'), ${maxAmount})),
        exhausted_at = iif(value ->> 'amount' > 0, null, exhausted_at) from json_each(?) where account = value ->> 'account'`,
      args: [list],
    },
    {
      // The outcome of the request that made the batch has counted as one.
      sql: `update usage_totals set requests = max(0, requests + ?1 - 1), spend = min(spend + ?2, ${maxAmount})
        where account_id = (select account_id from tokens where id = ?3)`,
      args: [requests, cost ?? 0, tokenId],
    },
  ]
}
