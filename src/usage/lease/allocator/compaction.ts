/**
 * Merges balances that no worker will report again into one for each account, under the worker `*`, in small batches.
 * The settled sums and the event chains stay the same.
 *
 *  a window that ended long ago    all workers; what the values of a dimension used becomes one account of the budget
 *  a released worker               released by an operator; or here, after 30 days of silence with nothing
 *                                  outstanding. Its instance never comes back; another one starts in its place
 *
 * Balances with an outstanding amount stay: it counts as spent until it is settled, returned or released. Balances of
 * live workers stay too, since a worker that reports a balance must find it here.
 */
import { brokenConstraint } from '../../../events/log/append.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Database } from '../../../store/open.ts'
import type { Statement } from '../../../store/statement.ts'
import { longAgoMs } from '../../window.ts'
import type { LedgerEpoch } from '../ledger-epoch.ts'

const batch = 200
const everyMs = 60_000
const silentMs = 30 * 86_400_000
const answersKeptMs = 86_400_000
/** After their slots are free again. */
const valuesKeptMs = 3_600_000

interface Balance {
  account: string
  worker: string
}

/** `account >= 'budget/' and account < 'budget0'` selects the accounts of budgets. */
const endedWindows = `select account, worker from lease_balances
  where account >= 'budget/' and account < 'budget0' and instr(account, '@') > 0
    and substr(account, instr(account, '@') + 1) < ?1 and worker <> '*' and granted - returned - settled = 0 limit ${batch}`

const releasedWorkers = `select c.account, c.worker from workers l join lease_balances c on c.worker = l.worker
  where l.released_at is not null and c.granted - c.returned - c.settled = 0 limit ${batch}`

/** Call regularly. Merges one batch of each kind a minute, and goes on at once while full batches are found. */
export class Compaction {
  readonly #ledger: Database
  readonly #clock: Clock
  readonly #epoch: Pick<LedgerEpoch, 'tidy'>
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(ledger: Database, clock: Clock, epoch: Pick<LedgerEpoch, 'tidy'>) {
    this.#ledger = ledger
    this.#clock = clock
    this.#epoch = epoch
  }

  async run(): Promise<void> {
    if (this.#clock.monotonic() < this.#nextAt) return
    const now = this.#clock.now()
    await this.#ledger.write([...expired(now), ...this.#epoch.tidy()])
    const ended = await this.#ledger.read<Balance>(endedWindows, [new Date(now - longAgoMs).toISOString().slice(0, 10)])
    const released = await this.#ledger.read<Balance>(releasedWorkers)
    await this.#merge(ended, budgetOf)
    await this.#merge(released, 'account')
    if (Math.max(ended.length, released.length) < batch) this.#nextAt = this.#clock.monotonic() + everyMs
  }

  async #merge(balances: readonly Balance[], into: string): Promise<void> {
    if (balances.length === 0) return
    try {
      await this.#ledger.write(merged(JSON.stringify(balances), into))
    } catch (error) {
      // One of them was granted more meanwhile. The next run tries again.
      if (brokenConstraint(error) !== 'check') throw error
    }
  }
}

const expired = (now: number): Statement[] => [
  {
    sql: `update workers set released_at = ?2, stream_id = 'silent' where worker in (
      select l.worker from workers l where l.released_at is null and l.last_heartbeat_at < ?1 and l.connected_at < ?1
        and not exists (select 1 from lease_balances c where c.worker = l.worker and c.granted - c.returned - c.settled > 0)
      limit ${batch})`,
    args: [now - silentMs, now],
  },
  { sql: 'delete from recall_answers where answer_number < ?', args: [now - answersKeptMs] },
  // Slots held that long ago are free, and no process that knew of them is running.
  { sql: 'delete from rate_holdings where heartbeat_at < ?', args: [now - silentMs] },
  { sql: "delete from rate_holdings where kind <> 'held' and free_at < ?", args: [now] },
  // Of limits for each value of a dimension there are many, and most values are not seen again.
  {
    sql: `delete from rate_holdings where (account like 'group/%/%/%' or account like 'access/%/%/%') and free_at < ?`,
    args: [now - valuesKeptMs],
  },
]

const among = "(account, worker) in (select value ->> 'account', value ->> 'worker' from json_each(?))"

/** The account of a budget's window, from that of a value in it: `budget/<id>/<digest>@<start>`. */
const budgetOf = `iif(instr(substr(account, 8), '/') > 0,
  substr(account, 1, 6 + instr(substr(account, 8), '/')) || substr(account, instr(account, '@')), account)`

/** `into`: the name of the account, as an SQL expression of `account`. */
const merged = (list: string, into: string): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 from lease_balances where ${among} and granted - returned - settled > 0`,
    args: [list],
  },
  {
    sql: `insert into lease_balances (account, worker, granted, settled)
      select ${into}, '*', sum(settled), sum(settled) from lease_balances where ${among} group by 1
      on conflict (account, worker) do update set granted = granted + excluded.granted,
        settled = settled + excluded.settled`,
    args: [list],
  },
  { sql: `delete from lease_balances where ${among}`, args: [list] },
  ...(into === 'account' ? [] : valuesMerged(list)),
]

/** The sums of the same accounts of values. */
const valuesMerged = (list: string): Statement[] => {
  const ofValues = `account in (select value ->> 'account' from json_each(?)) and ${budgetOf} <> account`
  return [
    {
      sql: `insert into usage_accounts (account, owner_id, kind, settled)
        select ${budgetOf}, null, 'budget', sum(settled) from usage_accounts where ${ofValues} group by 1
        on conflict (account) do update set settled = settled + excluded.settled`,
      args: [list],
    },
    { sql: `delete from usage_accounts where ${ofValues}`, args: [list] },
  ]
}
