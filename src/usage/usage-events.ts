/**
 * Events about limits: a token's account is used up, a worker claimed more than its grants, a worker's balance is
 * lost. Each is recorded once, in the transaction that marks it as recorded.
 */
import { z } from 'zod'
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Attribution } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import type { Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import { anonymous } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { fromNano } from '../lib/money.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { readAccountName } from './account-name.ts'
import { markPublished, publishExcess, type UnpublishedExcess, unpublishedExcesses } from './excess.ts'
import type { Losses } from './lease/allocator/sql-ledger.ts'
import { type CatalogOffer, catalogOffer } from './pricing/catalog-offer.ts'
import { cheapestRequest, type Spender } from './pricing/cheapest-request.ts'

export interface UsageEventsOptions {
  state: Database
  ledger: Database
  recorder(): Recorder
  clock: Clock
  newId: NewId
}

/** A token's account in the state, with what the token may use. */
interface LimitRow {
  id: string
  max_requests: number | null
  max_budget: number | null
  provider: string | null
  model_filter: string | null
  access_policy_ids: string | null
}

interface UsedAccount {
  account: string
  kind: 'money' | 'requests'
  settled: number
  allowed: number
  owner: LimitRow
}

/** A worker without a heartbeat for this long is given up. */
const lostAfterMs = 86_400_000
const accountsAtOnce = 500

type About = Partial<Attribution>

/** A worker's name begins with its gateway's id. */
const ofWorker = (worker: string): About => ({ gateway_id: worker.split('/')[0] ?? null })

export class UsageEvents {
  readonly #options: UsageEventsOptions
  readonly #offer: () => Promise<CatalogOffer>
  #lookedForUsedUp = false

  constructor(options: UsageEventsOptions) {
    this.#options = options
    this.#offer = catalogOffer(options.state, options.clock)
  }

  /**
   * These accounts were used or their limits changed. A budget is used up when the rest cannot pay for the cheapest
   * request of its token (usage/lease/README.md rule 18), even if it never paid for one. `requestOf` maps an account
   * to the request that last used it.
   */
  async used(accounts: readonly string[], requestOf: ReadonlyMap<string, string | null> = new Map()): Promise<void> {
    if (accounts.length === 0) return
    const limited = await this.#unexhausted(accounts)
    const floor = await this.#floors(limited)
    for (const used of limited) {
      if (used.allowed - used.settled < floor(used)) await this.#exhausted(used, requestOf.get(used.account) ?? null)
    }
    await this.#refused(JSON.stringify(accounts))
  }

  /** By money account, how much must be left so that it is not used up. For a budget any amount will do. */
  async floors(accounts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const ids = new Map(
      accounts.flatMap((account) => {
        const named = readAccountName(account)
        return named?.kind === 'money' ? [[account, named.id]] : []
      }),
    )
    const owners = await readLimits(this.#options.state, [...ids.values()])
    const used = [...ids].flatMap(([account, id]): UsedAccount[] => {
      const owner = owners.get(id)
      return owner === undefined ? [] : [{ account, kind: 'money', settled: 0, allowed: 0, owner }]
    })
    const floor = await this.#floors(used)
    return new Map([
      ...accounts.map((account) => [account, 1] as const),
      ...used.map((each) => [each.account, floor(each)] as const),
    ])
  }

  /** Models or prices changed: a used-up budget may pay for a request now. */
  async offerChanged(): Promise<void> {
    for (let after: string | null = ''; after !== null; ) after = await this.#reopenPayable(after)
  }

  /** Checks a page of used-up accounts by name. Returns the last, or null at the end. */
  async #reopenPayable(after: string): Promise<string | null> {
    const { state, ledger } = this.#options
    const rows = await ledger.read<{ account: string; owner_id: string; settled: number }>(
      `select account, owner_id, settled from usage_accounts
       where account > ? and kind = 'money' and exhausted_at is not null order by account limit ?`,
      [after, accountsAtOnce],
    )
    const owners = rows.map((row) => row.owner_id)
    const limits = await readLimits(state, owners)
    const used = rows.flatMap(({ account, owner_id: id, settled }): UsedAccount[] => {
      const owner = limits.get(id)
      const allowed = owner?.max_budget ?? Number.POSITIVE_INFINITY
      return owner === undefined ? [] : [{ account, kind: 'money', settled, allowed, owner }]
    })
    const floor = await this.#floors(used)
    const payable = used.filter((each) => each.allowed - each.settled >= floor(each)).map(({ account }) => account)
    if (payable.length > 0) {
      const sql = 'update usage_accounts set exhausted_at = null where account in (select value from json_each(?))'
      await ledger.write([{ sql, args: [JSON.stringify(payable)] }])
    }
    return rows.length < accountsAtOnce ? null : (rows.at(-1)?.account ?? null)
  }

  /** What must be left of an account so that it is not used up. */
  async #floors(accounts: readonly UsedAccount[]): Promise<(used: UsedAccount) => number> {
    if (accounts.every(({ kind }) => kind === 'requests')) return () => 1
    const offer = await this.#offer()
    const known = new Map<string, number>()
    return ({ kind, owner }) => {
      if (kind === 'requests') return 1
      const profile = JSON.stringify([owner.provider, owner.model_filter, owner.access_policy_ids])
      const floor = known.get(profile) ?? Math.max(1, cheapestRequest(spenderOf(owner, offer), offer) ?? 1)
      known.set(profile, floor)
      return floor
    }
  }

  /** The accounts among these with a limit that are not marked as used up. */
  async #unexhausted(accounts: readonly string[]): Promise<UsedAccount[]> {
    const { state, ledger } = this.#options
    const named = accounts.flatMap((account) => {
      const { kind, id } = readAccountName(account) ?? {}
      return kind === 'money' || kind === 'requests' ? [{ account, kind, id: id ?? '' }] : []
    })
    const limits = await readLimits(
      state,
      named.map(({ id }) => id),
    )
    const rows = await ledger.read<{ account: string; settled: number; exhausted_at: number | null }>(
      `select account, exhausted_at, settled - coalesce((select sum(value ->> 'amount') from batch_holds, json_each(held)
         where settled_at is null and value ->> 'account' = usage_accounts.account), 0) as settled from usage_accounts
       where account in (select value from json_each(?))`,
      [JSON.stringify(accounts)],
    )
    const known = new Map(rows.map((row) => [row.account, row]))
    return named.flatMap(({ account, kind, id }) => {
      const owner = limits.get(id)
      const allowed = kind === 'money' ? owner?.max_budget : owner?.max_requests
      const { settled = 0, exhausted_at: exhaustedAt = null } = known.get(account) ?? {}
      if (owner === undefined || allowed === undefined || allowed === null || exhaustedAt !== null) return []
      return [{ account, kind, settled, allowed, owner }]
    })
  }

  /** Once per process: records the accounts that were used up when an earlier process ended before it could. */
  async recordUsedUpLimits(): Promise<void> {
    if (this.#lookedForUsedUp) return
    const rows = await this.#options.ledger.read<{ account: string }>(
      `select distinct u.account from usage_accounts u join tokens t on t.account_id = u.owner_id
       where u.exhausted_at is null and u.settled >= iif(u.kind = 'money', t.max_budget, t.max_requests)`,
    )
    await this.used(rows.map(({ account }) => account))
    this.#lookedForUsedUp = true
  }

  /** Publishes charges above bounds to gateways and records them (excess.ts). */
  async exceeded(): Promise<void> {
    for (const excess of await this.#options.ledger.read<UnpublishedExcess>(unpublishedExcesses)) {
      const { provider_id, model, amount, token_id: tokenId } = excess
      const details = { provider_id, model, excess: fromNano(amount) }
      const about = tokenId === null ? {} : await this.#about(tokenId)
      const change = { state: [publishExcess(excess)], ledger: markPublished(excess) }
      await this.#record('usage.bound_exceeded', 'usage.bound_exceeded', details, change, about)
    }
  }

  /** A crash of a worker's host lost these amounts. */
  lost(worker: string, losses: Losses): Promise<void> {
    const details = { worker, estimated: true, amounts: losses }
    return this.#record('usage.lease_lost', 'usage.host_crashed', details, { state: [], ledger: [] }, ofWorker(worker))
  }

  /** Workers with a balance and no heartbeat for a day: their balance stays spent until it is released. */
  async recordLostWorkers(): Promise<void> {
    const { ledger, clock } = this.#options
    const rows = await ledger.read<{ worker: string; amounts: string }>(
      `select l.worker, json_group_array(json_object('account', c.account, 'amount', c.granted - c.returned - c.settled))
         as amounts
       from workers l join lease_balances c on c.worker = l.worker and c.granted - c.returned - c.settled > 0
       where l.last_heartbeat_at < ? and l.connected_at < ? and l.lost_at is null group by l.worker`,
      [clock.now() - lostAfterMs, clock.now() - lostAfterMs],
    )
    for (const { worker, amounts } of rows) {
      const details = { worker, estimated: true, amounts: JSON.parse(amounts) as unknown }
      const marked = [
        guard('not exists (select 1 from workers where worker = ? and lost_at is null)', [worker]),
        { sql: 'update workers set lost_at = ? where worker = ?', args: [clock.now(), worker] },
      ]
      await this.#record(
        'usage.lease_lost',
        'usage.worker_silent',
        details,
        { state: [], ledger: marked },
        ofWorker(worker),
      )
    }
  }

  async #exhausted({ account, kind, settled, allowed, owner }: UsedAccount, requestId: string | null): Promise<void> {
    const inUnit = (amount: number) => (kind === 'money' ? fromNano(amount) : amount)
    const details = { token_id: owner.id, limit: kind === 'money' ? 'max_budget' : 'max_requests' }
    await this.#record(
      'token.exhausted',
      kind === 'money' ? 'tokens.budget_exhausted' : 'tokens.request_limit_exhausted',
      { ...details, used: inUnit(settled), allowed: inUnit(allowed) },
      {
        state: [],
        ledger: [
          guard('exists (select 1 from usage_accounts where account = ? and exhausted_at is not null)', [account]),
          {
            sql: `insert into usage_accounts (account, owner_id, kind, exhausted_at) values (?, ?, ?, ?)
              on conflict (account) do update set exhausted_at = excluded.exhausted_at`,
            args: [account, owner.id, kind, this.#options.clock.now()],
          },
        ],
      },
      await this.#ofToken(account),
      requestId,
    )
  }

  async #refused(list: string): Promise<void> {
    const rows = await this.#options.ledger.read<{ account: string; refused: number; refused_recorded: number }>(
      `select account, refused, refused_recorded from usage_accounts
       where refused > refused_recorded and account in (select value from json_each(?))`,
      [list],
    )
    for (const { account, refused, refused_recorded: recorded } of rows) {
      const details = { account, amount: refused - recorded }
      const marked = [
        guard('not exists (select 1 from usage_accounts where account = ? and refused_recorded = ?)', [
          account,
          recorded,
        ]),
        { sql: 'update usage_accounts set refused_recorded = ? where account = ?', args: [refused, account] },
      ]
      const about = await this.#ofToken(account)
      await this.#record('usage.claim_refused', 'usage.claim_refused', details, { state: [], ledger: marked }, about)
    }
  }

  /** The attribution of an event about this account: that of its token's outcomes. Budgets have none. */
  async #ofToken(account: string): Promise<About> {
    const named = readAccountName(account)
    return named?.kind === 'money' || named?.kind === 'requests' ? await this.#about(named.id) : {}
  }

  async #about(tokenId: string): Promise<About> {
    const [token] = await this.#options.state.read<About>(
      'select id as token_id, event_team_id as team_id, user_id, key_class from tokens where id = ?',
      [tokenId],
    )
    return token ?? { token_id: tokenId }
  }

  /** Does nothing if another control plane has recorded it first. */
  async #record(
    type: EventType,
    reason: string,
    details: Record<string, unknown>,
    change: { state: readonly Statement[]; ledger: readonly Statement[] },
    about: About,
    requestId: string | null = null,
  ): Promise<void> {
    const { state, clock, newId, recorder } = this.#options
    const principal = { ...anonymous, name: 'usage' }
    const event = controlPlaneEvent({
      ...{ type, reason, principal, requestId: '', details, clock, newId },
      verdict: type === 'token.exhausted' ? 'deny' : 'error',
      configVersion: await versionNow(state),
    })
    try {
      const attributed = {
        ...event,
        request_id: requestId,
        event_attribution: { ...event.event_attribution, ...about },
      }
      await recorder().change({ event: attributed, ...change })
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    }
  }
}

const guard = (broken: string, args: Statement['args']): Statement => ({
  sql: `insert into guards (holds) select 0 where ${broken}`,
  args,
})

/** By account id, which is the id of the token that the account was made with. */
async function readLimits(state: Database, ids: readonly string[]): Promise<Map<string, LimitRow>> {
  if (ids.length === 0) return new Map()
  const rows = await state.read<LimitRow>(
    `select a.id, a.max_requests, a.max_budget, t.provider, t.model_filter, t.access_policy_ids
     from accounts a left join tokens t on t.id = a.id
     where a.deleted = 0 and a.id in (select value from json_each(?))`,
    [JSON.stringify([...new Set(ids)])],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

const stringsSchema = z.array(z.string())

const strings = (text: string | null): string[] | null => (text === null ? null : stringsSchema.parse(JSON.parse(text)))

const spenderOf = (row: LimitRow, { accessPolicies }: CatalogOffer): Spender => ({
  provider: row.provider,
  modelFilter: strings(row.model_filter),
  accessPolicies: (strings(row.access_policy_ids) ?? []).flatMap((id) => accessPolicies.get(id) ?? []),
})
