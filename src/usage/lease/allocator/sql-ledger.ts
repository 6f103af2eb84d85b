/**
 * The cells in the ledger. What must hold is tried in the transaction that rests on it: who holds the lane, that no
 * account is over its limit, that a lane's events are there before what its former process held is free.
 */
import { brokenConstraint } from '../../../events/log/append.ts'
import type { Clock } from '../../../lib/clock.ts'
import { type Database, databaseTime } from '../../../store/open.ts'
import type { Statement } from '../../../store/statement.ts'
import { type Hello, roundSize } from '../lease.ts'
import { isBehind, type LedgerMarks } from '../ledger-epoch.ts'
import type {
  CellLedger,
  ForgottenGrants,
  HeldLane,
  HelloResult,
  LaneAnswer,
  LedgerCell,
  LedgerChange,
  LedgerStanding,
} from './balance-ledger.ts'
import { awaitAll, awaitLanes, isAwaiting, type KnownLane } from './restored-ledger.ts'

/** Amounts that a lane's crash has cost: they stay spent. */
export type Losses = readonly { account: string; amount: number }[]

export interface SqlLedgerOptions {
  ledger: Database
  marks: LedgerMarks
  clock: Pick<Clock, 'now'>
  onLost(lane: string, losses: Losses): void
  /** The lanes that this control plane remembers, which an older copy may not know. */
  lanes(): readonly KnownLane[]
}

export function sqlLedger({ ledger, marks, clock, onLost, lanes }: SqlLedgerOptions): CellLedger {
  /** Nobody can say what a lane spent whose memory is an older copy. */
  const close = async ({ lane, streamId }: HeldLane): Promise<void> => {
    const losses = await outstandingBeside(ledger, lane, nothing)
    const done = await attempt(ledger, [heldGuard(lane, streamId), ...lostStatements(lane, nothing)])
    if (done === 'done' && losses.length > 0) onLost(lane, losses)
  }
  return {
    cells: (accounts) =>
      ledger.read<LedgerCell>(
        `select account, lane, rounds, granted, returned, settled from usage_cells
         where account in (select value from json_each(?))`,
        [JSON.stringify(accounts)],
      ),
    async book(accounts) {
      const rows = await ledger.read<LedgerCell & { standing: LedgerStanding }>(
        `select standing, account, lane, rounds, granted, returned, settled from (
          select case when ${isBehind('?2')} then 'behind' when ${isAwaiting} then 'awaiting' else 'whole' end as standing)
          left join usage_cells on account in (select value from json_each(?1))`,
        [JSON.stringify(accounts), marks.text],
      )
      const cells = rows.flatMap(({ standing, ...cell }) => (cell.account === null ? [] : [cell]))
      return { cells, standing: rows[0]?.standing ?? 'behind' }
    },
    answers: (accounts) =>
      ledger.read<LaneAnswer>(
        `select account, lane, rounds, granted, returned, settled, open, told from usage_answers
         where account in (select value from json_each(?))`,
        [JSON.stringify(accounts)],
      ),
    async lanesWithin(milliseconds) {
      const rows = await ledger.read<{ lane: string }>(
        `select lane from lanes where last_beat_at >= ${databaseTime} - ?1 and last_beat_at <= ${databaseTime} + ?1`,
        [milliseconds],
      )
      return rows.map(({ lane }) => lane)
    },
    awaitAll: async () => (await attempt(ledger, awaitAll(marks.text, lanes()))) === 'done',
    async raise(change) {
      const raising = change.raises.length > 0
      const statements = [
        ...(raising ? [standsGuard(marks.text, change.grants), ...raiseStatements(change), marks.count()] : []),
        ...answerStatements(change.answers ?? []),
      ]
      if (statements.length === 0) return true
      const done = (await attempt(ledger, statements)) === 'done'
      if (done && raising) marks.made()
      return done
    },
    async hello(lane, hello, cells, forgotten) {
      const told = JSON.stringify(cells)
      const losses = hello.crashed ? await outstandingBeside(ledger, lane.lane, told) : []
      const statements = [
        standsGuard(marks.text, false),
        ...(forgotten === undefined ? [] : forgottenStatements(forgotten)),
        ...helloStatements(lane, hello, told, clock.now()),
        marks.count(),
      ]
      if ((await attempt(ledger, statements)) === 'refused') {
        const why = await whyRefused(ledger, lane, hello, told)
        if (why === 'rolled_back') await close(lane)
        return why
      }
      marks.made()
      if (losses.length > 0) onLost(lane.lane, losses)
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

/** Of the row, and of what it is raised to: what stands in the round before the later of the two. */
const offOld = `max(0, excluded.rounds - rounds) * ${roundSize}`
const offNew = `max(0, rounds - excluded.rounds) * ${roundSize}`
const mostGranted = `max(granted - ${offOld}, excluded.granted - ${offNew})`

/** Of a grant nothing stands while lanes are waited for, and of no raise where the ledger has lost what is known of it. */
const standsGuard = (marks: string, grants: boolean): Statement => ({
  sql: `insert into guards (holds) select 0 where ${isBehind('?1')} or (?2 and ${isAwaiting})`,
  args: [marks, grants ? 1 : 0],
})

const raised = `insert into usage_cells (account, lane, rounds, granted, returned)
  select value ->> 'account', value ->> 'lane', value ->> 'rounds', value ->> 'granted', value ->> 'returned'
  from json_each(?1)`
const raisedOver = `on conflict (account, lane) do update set rounds = max(rounds, excluded.rounds),
  granted = ${mostGranted},
  returned = max(returned - ${offOld}, min(excluded.returned - ${offNew}, ${mostGranted} - settled))`

/** What a lane tells is believed where it keeps within the limit, or alone does, if it is not known what others hold. */
const forgottenStatements = ({ raises, since }: ForgottenGrants): Statement[] => [
  {
    sql: `${raised} where value ->> 'limit' is null or (value ->> 'granted') - (value ->> 'returned') + coalesce((
      select sum(granted - returned) from usage_cells c where c.account = value ->> 'account'
        and c.lane <> value ->> 'lane' and not (select awaited from lanes where lane = value ->> 'lane')
      ), 0) <= value ->> 'limit' ${raisedOver}`,
    args: [JSON.stringify(raises)],
  },
  awaitLanes(since),
]

const raiseStatements = ({ lanes, raises, limits }: LedgerChange): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 from json_each(?) asked where not exists (
      select 1 from lanes where lane = asked.value ->> 'lane' and stream_id = asked.value ->> 'streamId')`,
    args: [JSON.stringify(lanes)],
  },
  {
    sql: `${raised} where true ${raisedOver}`,
    args: [JSON.stringify(raises)],
  },
  {
    sql: `insert into guards (holds) select 0 from json_each(?) asked where (
      select coalesce(sum(granted - returned), 0) from usage_cells where account = asked.value ->> 'account'
    ) > asked.value ->> 'limit'`,
    args: [JSON.stringify(limits)],
  },
]

const answerStatements = (answers: readonly LaneAnswer[]): Statement[] =>
  answers.length === 0
    ? []
    : [
        {
          sql: `insert into usage_answers (account, lane, rounds, granted, returned, settled, open, told)
            select value ->> 'account', value ->> 'lane', value ->> 'rounds', value ->> 'granted', value ->> 'returned',
              value ->> 'settled', value ->> 'open', value ->> 'told' from json_each(?) where true
            on conflict (account, lane) do update set rounds = excluded.rounds, granted = excluded.granted,
              returned = excluded.returned, settled = excluded.settled, open = excluded.open,
              told = max(told + 1, excluded.told)`,
          args: [JSON.stringify(answers)],
        },
      ]

const besideTold = `lane = ?1 and granted - returned - settled > 0
  and account not in (select value ->> 'account' from json_each(?2))`

const outstandingBeside = (
  ledger: Database,
  lane: string,
  told: string,
): Promise<{ account: string; amount: number }[]> =>
  ledger.read(`select account, granted - returned - settled as amount from usage_cells where ${besideTold}`, [
    lane,
    told,
  ])

/** Of an account's name, as usage/account-name.ts reads it. */
const ownerOf = "iif(c.account like 'token/%', substr(c.account, 7, instr(substr(c.account, 7), '/') - 1), null)"
const kindOf = `case when c.account like 'token/%/money' then 'money' when c.account like 'token/%/requests' then 'requests'
  when c.account like 'grant/%' then 'grant' else 'budget' end`

const nothing = '[]'

const heldGuard = (lane: string, streamId: string): Statement => ({
  sql: 'insert into guards (holds) select 0 where not exists (select 1 from lanes where lane = ? and stream_id = ?)',
  args: [lane, streamId],
})

/** What a lane holds beside what it tells of counts as settled. */
const lostStatements = (lane: string, told: string): Statement[] => [
  {
    sql: `insert into usage_accounts (account, owner_id, kind, settled)
      select c.account, ${ownerOf}, ${kindOf}, granted - returned - settled from usage_cells c where ${besideTold}
      on conflict (account) do update set settled = settled + excluded.settled`,
    args: [lane, told],
  },
  { sql: `update usage_cells set settled = granted - returned where ${besideTold}`, args: [lane, told] },
]

/** Whether a lane tells less of a cell than it once had; of what it tells, the lane, and the last event it counts. */
const knowsLess = `exists (select 1 from usage_cells c join json_each(?) told on c.account = told.value ->> 'account'
  where c.lane = ? and (c.returned - (told.value ->> 'returned') > ((told.value ->> 'rounds') - c.rounds) * ${roundSize}
    or (c.settled > told.value ->> 'settled' and coalesce((select seq from chains where chain = c.lane), 0) <= ?)))`

type Greeting = { lane: string; streamId: string; process: string; number: number }

function helloStatements(
  { lane, streamId, process, number }: Greeting,
  hello: Hello,
  told: string,
  now: number,
): Statement[] {
  const free = { sql: `update usage_cells set returned = granted - settled where ${besideTold}`, args: [lane, told] }
  return [
    {
      sql: `insert into guards (holds) select 0 where not exists (
        select 1 from lanes where lane = ? and stream_id = ? and released_at is null and (process <> ? or hello < ?))`,
      args: [lane, streamId, process, number],
    },
    {
      sql: 'insert into guards (holds) select 0 where coalesce((select seq from chains where chain = ?), 0) < ?',
      args: [lane, hello.through],
    },
    {
      sql: `insert into guards (holds) select 0 where ${knowsLess}`,
      args: [told, lane, hello.counted],
    },
    ...(hello.crashed ? lostStatements(lane, told) : [free]),
    {
      sql: 'update lanes set process = ?, hello = ?, lost_at = null, greeted_at = ?, awaited = 0 where lane = ?',
      args: [process, number, now, lane],
    },
  ]
}

/**
 * Whatever refused it may be over by now, events above all, which are shipped at the same time: then it is to be said
 * again.
 */
async function whyRefused(
  ledger: Database,
  { lane, streamId, process, number }: Greeting,
  { counted }: Hello,
  told: string,
): Promise<HelloResult> {
  const [row] = await ledger.read<{
    stream_id: string
    process: string
    hello: number
    released_at: number | null
    knows_less: number
  }>(`select stream_id, process, hello, released_at, ${knowsLess} as knows_less from lanes where lane = ?`, [
    told,
    lane,
    counted,
    lane,
  ])
  if (row === undefined || row.stream_id !== streamId) return 'overtaken'
  if (row.released_at !== null) return 'released'
  if (row.process === process && row.hello >= number) return 'overtaken'
  return row.knows_less === 1 ? 'rolled_back' : 'behind'
}
