/**
 * Events about limits, each once: an account of a token is used up; a lane claimed more than it had been granted; what a
 * lane held is lost. Each is recorded in the transaction that marks it as told.
 */
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { Attribution, EventType } from '../events/event.ts'
import type { Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { fromNano } from '../lib/money.ts'
import type { Database, Statement } from '../store/open.ts'
import { anonymous } from '../tokens/principal.ts'
import { readAccountName } from './account-name.ts'
import { spentOf } from './settlement.ts'
import type { Losses } from './sql-ledger.ts'

export interface UsageNewsOptions {
  state: Database
  ledger: Database
  recorder(): Recorder
  clock: Clock
  newId: NewId
  /**
   * Nano-dollars of one input and one output token of the cheapest model that each of these tokens may use: with less
   * left its budget is used up (protocols section 2, rule 18). Without it only nothing is too little.
   */
  cheapest?(tokenIds: readonly string[]): Promise<ReadonlyMap<string, number>>
}

interface UsedRow {
  account: string
  kind: 'money' | 'requests'
  settled: number
  owner_id: string
  allowed: number
}

/** A lane that has not beaten for so long is given up. */
const lostAfterMs = 86_400_000

type About = Partial<Attribution>

/** A lane is named after its gateway. */
const ofLane = (lane: string): About => ({ gateway_id: lane.split('/')[0] ?? null })

export class UsageNews {
  readonly #options: UsageNewsOptions

  constructor(options: UsageNewsOptions) {
    this.#options = options
  }

  /** Something was used of these accounts, or their limits have changed. */
  async used(accounts: readonly string[]): Promise<void> {
    if (accounts.length === 0) return
    const list = JSON.stringify(accounts)
    const rows = await this.#options.ledger.read<UsedRow>(
      `select u.account, u.kind, ${spentOf('u')} as settled, u.owner_id,
         min(iif(u.kind = 'money', t.max_budget, t.max_requests)) as allowed
       from usage_accounts u join tokens t on t.account_id = u.owner_id
       where u.account in (select value from json_each(?)) and u.exhausted_at is null
       group by u.account having allowed is not null`,
      [list],
    )
    const floors = (await this.#options.cheapest?.(rows.map((row) => row.owner_id))) ?? new Map<string, number>()
    for (const row of rows) {
      const least = row.kind === 'money' ? Math.max(1, floors.get(row.owner_id) ?? 1) : 1
      if (row.allowed - row.settled < least) await this.#exhausted(row)
    }
    await this.#violated(list)
  }

  /** A crash of a lane's host has cost these amounts. */
  lost(lane: string, losses: Losses): Promise<void> {
    const details = { lane, estimated: true, amounts: losses }
    return this.#record('usage.lease_lost', 'usage.host_crashed', details, [], ofLane(lane))
  }

  /** Lanes that hold something and have been silent for a day: what they hold stays spent until it is released. */
  async lookForLost(): Promise<void> {
    const { ledger, clock } = this.#options
    const rows = await ledger.read<{ lane: string; amounts: string }>(
      `select l.lane, json_group_array(json_object('account', c.account, 'amount', c.granted - c.returned - c.settled))
         as amounts
       from lanes l join usage_cells c on c.lane = l.lane and c.granted - c.returned - c.settled > 0
       where l.last_beat_at < ? and l.connected_at < ? and l.lost_at is null group by l.lane`,
      [clock.now() - lostAfterMs, clock.now() - lostAfterMs],
    )
    for (const { lane, amounts } of rows) {
      const details = { lane, estimated: true, amounts: JSON.parse(amounts) as unknown }
      const marked = [
        guard('not exists (select 1 from lanes where lane = ? and lost_at is null)', [lane]),
        { sql: 'update lanes set lost_at = ? where lane = ?', args: [clock.now(), lane] },
      ]
      await this.#record('usage.lease_lost', 'usage.lane_silent', details, marked, ofLane(lane))
    }
  }

  async #exhausted({ account, kind, settled, allowed, owner_id: tokenId }: UsedRow): Promise<void> {
    const said = (amount: number) => (kind === 'money' ? fromNano(amount) : amount)
    const details = { token_id: tokenId, limit: kind === 'money' ? 'max_budget' : 'max_requests' }
    await this.#record(
      'token.exhausted',
      kind === 'money' ? 'tokens.budget_exhausted' : 'tokens.request_limit_exhausted',
      { ...details, used: said(settled), allowed: said(allowed) },
      [
        guard('not exists (select 1 from usage_accounts where account = ? and exhausted_at is null)', [account]),
        {
          sql: 'update usage_accounts set exhausted_at = ? where account = ?',
          args: [this.#options.clock.now(), account],
        },
      ],
      await this.#ofToken(account),
    )
  }

  async #violated(list: string): Promise<void> {
    const rows = await this.#options.ledger.read<{ account: string; refused: number; refused_told: number }>(
      `select account, refused, refused_told from usage_accounts
       where refused > refused_told and account in (select value from json_each(?))`,
      [list],
    )
    for (const { account, refused, refused_told: told } of rows) {
      const details = { account, amount: refused - told }
      const marked = [
        guard('not exists (select 1 from usage_accounts where account = ? and refused_told = ?)', [account, told]),
        { sql: 'update usage_accounts set refused_told = ? where account = ?', args: [refused, account] },
      ]
      const about = await this.#ofToken(account)
      await this.#record('usage.bound_violated', 'usage.bound_violated', details, marked, about)
    }
  }

  /** Whose event it is: the same as of the outcomes of the token whose limit this is. Of a budget it is nobody's. */
  async #ofToken(account: string): Promise<About> {
    const named = readAccountName(account)
    if (named?.kind !== 'money' && named?.kind !== 'requests') return {}
    const [token] = await this.#options.state.read<About>(
      'select id as token_id, event_team_id as team_id, user_id, key_class from tokens where id = ?',
      [named.id],
    )
    return token ?? { token_id: named.id }
  }

  /** Nothing where another has recorded it first. */
  async #record(
    type: EventType,
    reason: string,
    details: Record<string, unknown>,
    ledger: readonly Statement[],
    about: About,
  ): Promise<void> {
    const { state, clock, newId, recorder } = this.#options
    const [head] = await state.read<{ version: number }>('select version from state_head')
    const principal = { ...anonymous, name: 'usage' }
    const event = controlPlaneEvent({
      ...{ type, reason, principal, requestId: '', details, clock, newId },
      verdict: type === 'token.exhausted' ? 'deny' : 'error',
      configVersion: head?.version ?? 0,
    })
    try {
      // No call asked for it.
      const attributed = { ...event, request_id: null, event_attribution: { ...event.event_attribution, ...about } }
      await recorder().change({ event: attributed, state: [], ledger })
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    }
  }
}

const guard = (broken: string, args: Statement['args']): Statement => ({
  sql: `insert into guards (holds) select 0 where ${broken}`,
  args,
})
