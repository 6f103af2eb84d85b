/**
 * The balances in the ledger. Each condition is checked in the transaction that relies on it: which stream owns the
 * worker, that no account is over its limit, and that a worker's events have arrived before its former balance is
 * freed.
 */
import { brokenConstraint } from '../../../events/log/append.ts'
import type { Clock } from '../../../lib/clock.ts'
import { type Database, databaseTime } from '../../../store/open.ts'
import type { Statement } from '../../../store/statement.ts'
import { balancesOf, returnedTo } from '../../batches/batch-returns.ts'
import { type Registration, roundSize } from '../lease.ts'
import { isBehind, type LedgerEpoch } from '../ledger-epoch.ts'
import type {
  BalanceLedger,
  LedgerBalance,
  LedgerChange,
  LedgerStatus,
  MissingGrants,
  RegistrationResult,
  WorkerAnswer,
  WorkerConnection,
} from './balance-ledger.ts'
import { isReconciling, type KnownWorker, startFullReconciliation, startReconciliation } from './restored-ledger.ts'

/** Amounts lost in a worker's crash. They stay spent. */
export type Losses = readonly { account: string; amount: number }[]

export interface SqlLedgerOptions {
  ledger: Database
  epoch: LedgerEpoch
  clock: Pick<Clock, 'now'>
  onLost(worker: string, losses: Losses): void
  /** The workers that this control plane remembers. An older copy of the ledger may not know them. */
  workers(): readonly KnownWorker[]
}

export function sqlLedger({ ledger, epoch, clock, onLost, workers }: SqlLedgerOptions): BalanceLedger {
  /** Closes a worker whose memory is an older copy: what it spent is unknown, so its whole balance counts as lost. */
  const close = async ({ worker, streamId }: WorkerConnection): Promise<void> => {
    const losses = await outstandingBesides(ledger, worker, nothing)
    const done = await attempt(ledger, [heldGuard(worker, streamId), ...lostStatements(worker, nothing)])
    if (done === 'done' && losses.length > 0) onLost(worker, losses)
  }
  return {
    balances: (accounts) =>
      ledger.read<LedgerBalance>(
        `select account, worker, rounds, granted, returned, settled from ${balancesOf('?1')}`,
        [JSON.stringify(accounts)],
      ),
    async book(accounts) {
      const rows = await ledger.read<LedgerBalance & { status: LedgerStatus }>(
        `select status, account, worker, rounds, granted, returned, settled from (
          select case when ${isBehind('?2')} then 'behind' when ${isReconciling} then 'awaiting' else 'whole' end as status)
          left join ${balancesOf('?1')} on true`,
        [JSON.stringify(accounts), epoch.text],
      )
      const balances = rows.flatMap(({ status, ...balance }) => (balance.account === null ? [] : [balance]))
      return { balances, status: rows[0]?.status ?? 'behind' }
    },
    answers: (accounts) =>
      ledger.read<WorkerAnswer>(
        `select account, worker, rounds, granted, returned, settled, open, answer_number from recall_answers
         where account in (select value from json_each(?))`,
        [JSON.stringify(accounts)],
      ),
    async workersWithin(milliseconds) {
      const rows = await ledger.read<{ worker: string }>(
        `select worker from workers where last_heartbeat_at >= ${databaseTime} - ?1 and last_heartbeat_at <= ${databaseTime} + ?1`,
        [milliseconds],
      )
      return rows.map(({ worker }) => worker)
    },
    startFullReconciliation: async () =>
      (await attempt(ledger, startFullReconciliation(epoch.text, workers()))) === 'done',
    async apply(change) {
      const raising = change.increases.length > 0
      const statements = [
        ...(raising ? [standsGuard(epoch.text, change.grants), ...increaseStatements(change), epoch.count()] : []),
        ...answerStatements(change.answers ?? []),
      ]
      if (statements.length === 0) return true
      const done = (await attempt(ledger, statements)) === 'done'
      if (done && raising) epoch.made()
      return done
    },
    async register(worker, registration, balances, forgotten) {
      const reported = JSON.stringify(balances)
      const losses = registration.crashed ? await outstandingBesides(ledger, worker.worker, reported) : []
      const statements = [
        standsGuard(epoch.text, false),
        ...(forgotten === undefined ? [] : missingGrantStatements(forgotten)),
        ...registrationStatements(worker, registration, reported, clock.now()),
        epoch.count(),
      ]
      if ((await attempt(ledger, statements)) === 'refused') {
        const why = await whyRefused(ledger, worker, registration, reported)
        if (why === 'rolled_back') await close(worker)
        return why
      }
      epoch.made()
      if (losses.length > 0) onLost(worker.worker, losses)
      return 'done'
    },
  }
}

async function attempt(ledger: Database, statements: readonly Statement[]): Promise<'done' | 'refused'> {
  try {
    await ledger.write(statements)
    return 'done'
  } catch (error) {
    if (brokenConstraint(error) !== 'check') throw error
    return 'refused'
  }
}

/** For the stored row and the new values: what belongs to an earlier round than the later of the two. */
const offOld = `max(0, excluded.rounds - rounds) * ${roundSize}`
const offNew = `max(0, rounds - excluded.rounds) * ${roundSize}`
const maxGranted = `max(granted - ${offOld}, excluded.granted - ${offNew})`

/** Refuses a grant during reconciliation, and any increase in a ledger that is behind. */
const standsGuard = (epoch: string, grants: boolean): Statement => ({
  sql: `insert into guards (holds) select 0 where ${isBehind('?1')} or (?2 and ${isReconciling})`,
  args: [epoch, grants ? 1 : 0],
})

const raised = `insert into lease_balances (account, worker, rounds, granted, returned)
  select value ->> 'account', value ->> 'worker', value ->> 'rounds', value ->> 'granted', value ->> 'returned'
  from json_each(?1)`
const increaseOnConflict = `on conflict (account, worker) do update set rounds = max(rounds, excluded.rounds),
  granted = ${maxGranted},
  returned = max(returned - ${offOld}, min(excluded.returned - ${offNew}, ${maxGranted} - settled))`

/**
 * Believes a worker's report if it stays within the limit. During reconciliation the balances of others are unknown
 * and do not count.
 */
const missingGrantStatements = ({ increases, since }: MissingGrants): Statement[] => [
  {
    sql: `${raised} where value ->> 'limit' is null or (value ->> 'granted') - (value ->> 'returned') + coalesce((
      select sum(granted - returned) from lease_balances c where c.account = value ->> 'account'
        and c.worker <> value ->> 'worker' and not (select pending_reconciliation from workers where worker = value ->> 'worker')
      ), 0) - ${returnedTo("value ->> 'account'")} <= value ->> 'limit' ${increaseOnConflict}`,
    args: [JSON.stringify(increases)],
  },
  startReconciliation(since),
]

const increaseStatements = ({ workers, increases, limits }: LedgerChange): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 from json_each(?) asked where not exists (
      select 1 from workers where worker = asked.value ->> 'worker' and stream_id = asked.value ->> 'streamId')`,
    args: [JSON.stringify(workers)],
  },
  {
    sql: `${raised} where true ${increaseOnConflict}`,
    args: [JSON.stringify(increases)],
  },
  {
    sql: `insert into guards (holds) select 0 from json_each(?) asked where (
      select coalesce(sum(granted - returned), 0) from lease_balances where account = asked.value ->> 'account'
    ) - ${returnedTo("asked.value ->> 'account'")} > asked.value ->> 'limit'`,
    args: [JSON.stringify(limits)],
  },
]

const answerStatements = (answers: readonly WorkerAnswer[]): Statement[] =>
  answers.length === 0
    ? []
    : [
        {
          sql: `insert into recall_answers (account, worker, rounds, granted, returned, settled, open, answer_number)
            select value ->> 'account', value ->> 'worker', value ->> 'rounds', value ->> 'granted', value ->> 'returned',
              value ->> 'settled', value ->> 'open', value ->> 'answer_number' from json_each(?) where true
            on conflict (account, worker) do update set rounds = excluded.rounds, granted = excluded.granted,
              returned = excluded.returned, settled = excluded.settled, open = excluded.open,
              answer_number = max(answer_number + 1, excluded.answer_number)`,
          args: [JSON.stringify(answers)],
        },
      ]

const besidesReported = `worker = ?1 and granted - returned - settled > 0
  and account not in (select value ->> 'account' from json_each(?2))`

const outstandingBesides = (
  ledger: Database,
  worker: string,
  reported: string,
): Promise<{ account: string; amount: number }[]> =>
  ledger.read(`select account, granted - returned - settled as amount from lease_balances where ${besidesReported}`, [
    worker,
    reported,
  ])

/** The owner from an account's name, as usage/account-name.ts reads it. */
const ownerOf = "iif(c.account like 'token/%', substr(c.account, 7, instr(substr(c.account, 7), '/') - 1), null)"
const kindOf = `case when c.account like 'token/%/money' then 'money' when c.account like 'token/%/requests' then 'requests'
  when c.account like 'grant/%' then 'grant' else 'budget' end`

const nothing = '[]'

const heldGuard = (worker: string, streamId: string): Statement => ({
  sql: 'insert into guards (holds) select 0 where not exists (select 1 from workers where worker = ? and stream_id = ?)',
  args: [worker, streamId],
})

/** Settles what a worker holds beyond the reported balances. */
const lostStatements = (worker: string, reported: string): Statement[] => [
  {
    sql: `insert into usage_accounts (account, owner_id, kind, settled)
      select c.account, ${ownerOf}, ${kindOf}, granted - returned - settled from lease_balances c where ${besidesReported}
      on conflict (account) do update set settled = settled + excluded.settled`,
    args: [worker, reported],
  },
  { sql: `update lease_balances set settled = granted - returned where ${besidesReported}`, args: [worker, reported] },
]

/**
 * Whether a worker reports less of a balance than before. Arguments: its report, its name and the last event that the
 * report counts.
 */
const knowsLess = `exists (select 1 from lease_balances c join json_each(?) reported on c.account = reported.value ->> 'account'
  where c.worker = ? and (c.returned - (reported.value ->> 'returned') > ((reported.value ->> 'rounds') - c.rounds) * ${roundSize}
    or (c.settled > reported.value ->> 'settled' and coalesce((select seq from chains where chain = c.worker), 0) <= ?)))`

type WorkerProcess = { worker: string; streamId: string; process: string; number: number }

function registrationStatements(
  { worker, streamId, process, number }: WorkerProcess,
  registration: Registration,
  reported: string,
  now: number,
): Statement[] {
  const free = {
    sql: `update lease_balances set returned = granted - settled where ${besidesReported}`,
    args: [worker, reported],
  }
  return [
    {
      sql: `insert into guards (holds) select 0 where not exists (
        select 1 from workers where worker = ? and stream_id = ? and released_at is null and (process <> ? or registration_number < ?))`,
      args: [worker, streamId, process, number],
    },
    {
      sql: 'insert into guards (holds) select 0 where coalesce((select seq from chains where chain = ?), 0) < ?',
      args: [worker, registration.through],
    },
    {
      sql: `insert into guards (holds) select 0 where ${knowsLess}`,
      args: [reported, worker, registration.counted],
    },
    ...(registration.crashed ? lostStatements(worker, reported) : [free]),
    {
      sql: 'update workers set process = ?, registration_number = ?, lost_at = null, registered_at = ?, pending_reconciliation = 0 where worker = ?',
      args: [process, number, now, worker],
    },
  ]
}

/**
 * The reason for the refusal may be gone by now, since events are shipped at the same time. Then the worker must
 * register again.
 */
async function whyRefused(
  ledger: Database,
  { worker, streamId, process, number }: WorkerProcess,
  { counted }: Registration,
  reported: string,
): Promise<RegistrationResult> {
  const [row] = await ledger.read<{
    stream_id: string
    process: string
    registration_number: number
    released_at: number | null
    knows_less: number
  }>(
    `select stream_id, process, registration_number, released_at, ${knowsLess} as knows_less from workers where worker = ?`,
    [reported, worker, counted, worker],
  )
  if (row === undefined || row.stream_id !== streamId) return 'overtaken'
  if (row.released_at !== null) return 'released'
  if (row.process === process && row.registration_number >= number) return 'overtaken'
  return row.knows_less === 1 ? 'rolled_back' : 'behind'
}
