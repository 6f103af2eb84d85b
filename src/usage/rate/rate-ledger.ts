/**
 * The control plane's side of slots (rate.ts): no more slots of a limit are given out than it has. As with money,
 * counters in the ledger are raised before the reply. A row has one of three kinds: `held` by a worker; `resting`,
 * returned while in use and free when cold; `lost`, held by a process whose times of use nobody knows.
 *
 * 1. A worker without a message for its ttl, a minute and one percent more cannot have used a slot within the last
 *   minute: its slots are free again. Only slots may be freed by time, never money.
 * 2. A new process of a worker has a higher run. The slots of earlier runs are returned, and those that it reports as
 *   used rest. It does not know the uses of runs below `known_from`: their slots are lost, and freed as in 1. A message
 *   of a lower run than the latest is refused.
 * 3. Free slots are granted: all of them to a worker that is alone with the limit, otherwise the wanted ones, and half
 *   of the rest while more than half of the limit is free. If too few are free, cold slots are recalled from the other
 *   holders, and the request waits until each has answered, 2 s at most. So nobody is refused while another holds a cold
 *   slot. A worker that is granted some while another waits is recalled too.
 * 4. A reply with fewer slots than wanted says when more will be free: every holder reports when its slots get cold.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { type Cooling, maxMinutes, slotMinuteMs, slotTtlMs } from './rate.ts'
import type { SlotBalance, SlotsReply } from './rate-protocol.ts'

/**
 * How long after a worker's last message its slots are cold. One percent covers clocks that run at different speeds.
 */
export const lostAfterMs = Math.ceil((slotTtlMs + slotMinuteMs) * 1.01)
const recallAgainMs = 100
/** How much longer a time on the worker's clock may take on the ledger's. */
const clocksApart = 1.01
const coolingSchema = z.array(z.tuple([z.number(), z.number()]))
/** Pauses between checks whether the other holders have answered, in milliseconds: 2 s in all. */
const recallWaits = [5, 10, 20, 40, 80, 160, 320, 640, 725]

export interface RateLedgerOptions {
  /** How many slots a limit has, by account name. Rejects if that cannot be read at the moment. */
  slotsOf(account: string): Promise<number>
  ledger: Pick<Database, 'read' | 'write'>
  now(): number
  newId(): string
  sleep(milliseconds: number): Promise<void>
  /** Recalls cold slots of an account from reachable workers. `at` names the recall. */
  recall(account: string, want: number, workers: readonly string[], at: number): void
}

/** Applies a worker's report of its slots, and grants what it wants as far as slots are free. */
export async function answerSlots(
  options: RateLedgerOptions,
  worker: string,
  balances: readonly SlotBalance[],
): Promise<SlotsReply> {
  return { balances: await Promise.all(balances.map((balance) => answerBalance(options, worker, balance))) }
}

async function answerBalance(
  options: RateLedgerOptions,
  worker: string,
  balance: SlotBalance,
): Promise<SlotsReply['balances'][number]> {
  const limit = balance.want === 0 && balance.resting.length === 0 ? 0 : await options.slotsOf(balance.account)
  await options.ledger.write([...recordReport(options, worker, balance, limit), ...grant(worker, balance, limit)])
  let held = await holding(options, worker, balance)
  if (balance.want === 0 || limit === 0 || held.granted - balance.granted >= balance.want) return held
  let recall = await newRecall(options, worker, balance)
  let silent = await sendRecalls(options, worker, balance, recall)
  for (const wait of recallWaits) {
    if (silent.length === 0) break
    await options.sleep(wait)
    // This order matters: what was returned before the last answer is granted.
    silent = await sendRecalls(options, worker, balance, recall)
    await options.ledger.write(
      grant(worker, { ...balance, want: balance.want - (held.granted - balance.granted) }, limit),
    )
    held = await holding(options, worker, balance)
    if (held.granted - balance.granted >= balance.want) return held
    if (silent.length > 0) continue
    // Others took what was returned. Their holders may have more.
    const next = await newRecall(options, worker, balance)
    if (next.grantedToOthers === recall.grantedToOthers) break
    recall = next
    silent = await sendRecalls(options, worker, balance, recall)
  }
  return { ...held, ...(await coolingOf(options, worker, balance, limit, recall.at)) }
}

interface SlotRecall {
  /** The name of the recall. */
  at: number
  grantedToOthers: number
  /** When the recall was last sent to each holder. */
  sentAt: Map<string, number>
}

async function newRecall(
  { ledger, now }: RateLedgerOptions,
  worker: string,
  { account }: SlotBalance,
): Promise<SlotRecall> {
  const [row] = await ledger.read<{ granted: number }>(
    'select coalesce(sum(granted), 0) as granted from rate_holdings where account = ? and worker <> ?',
    [account, worker],
  )
  return { at: nameOfRecall(now()), grantedToOthers: row?.granted ?? 0, sentAt: new Map() }
}

/**
 * Sends the recall to holders that have not answered, repeated after a while because messages may be lost. Returns
 * their names.
 */
async function sendRecalls(
  options: RateLedgerOptions,
  worker: string,
  balance: SlotBalance,
  { at, sentAt }: SlotRecall,
): Promise<string[]> {
  const silent = await unresponsiveHolders(options, worker, balance, at)
  const now = options.now()
  const due = silent.filter((holder) => now - (sentAt.get(holder) ?? Number.NEGATIVE_INFINITY) >= recallAgainMs)
  for (const holder of due) sentAt.set(holder, now)
  if (due.length > 0) options.recall(balance.account, balance.want, due, at)
  return silent
}

/**
 * When more slots will be free, in milliseconds from now: used ones when they are cold; all slots of a silent worker
 * when it counts as lost, and their number. Slots above a lowered limit do not count.
 */
async function coolingOf(
  { ledger, now }: RateLedgerOptions,
  worker: string,
  { account }: SlotBalance,
  limit: number,
  at: number,
): Promise<{ cooling: Cooling[]; absent: number }> {
  const rows = await ledger.read<{ kind: string; held: number; free_at: number; reported: number; cooling: string }>(
    `select kind, granted - returned as held, free_at, kind = 'held' and (worker = ? or recalled_at >= ?) as reported, cooling
     from rate_holdings where account = ? and granted > returned`,
    [worker, at, account],
  )
  const instants = rows.flatMap(({ held, free_at: freeAt, reported, cooling }): Cooling[] =>
    reported === 1 ? coolingSchema.parse(JSON.parse(cooling)) : [[freeAt, held]],
  )
  const absent = rows.reduce(
    (sum, { kind, held, reported }) => sum + (kind !== 'resting' && reported === 0 ? held : 0),
    0,
  )
  let beyond = rows.reduce((sum, { held }) => sum + held, -limit)
  const cooling = instants
    .sort(([first], [second]) => first - second)
    .flatMap(([instant, slots]): Cooling[] => {
      const kept = Math.min(slots, Math.max(0, beyond))
      beyond -= kept
      return slots > kept ? [[Math.max(0, Math.ceil(instant - now())), slots - kept]] : []
    })
  return { cooling, absent }
}

let calls = 0

/**
 * A later recall has a larger name. Recalls in the same millisecond differ, or an answer to one would count for the
 * other.
 */
const nameOfRecall = (now: number): number => {
  calls = (calls + 1) % 1024
  return Math.floor(now) * 1024 + calls
}

/** The totals of a worker. Throws `worker_fenced` if another process of it has reported since. */
async function holding({ ledger }: RateLedgerOptions, worker: string, { account, process }: SlotBalance) {
  const [row] = await ledger.read<{ granted: number; returned: number; process: string }>(
    'select granted, returned, process from rate_holdings where account = ? and worker = ?',
    [account, worker],
  )
  if (row === undefined || row.process !== process) throw new Failure('worker_fenced')
  const { granted, returned } = row
  return { account, granted, returned, cooling: [] as Cooling[], absent: 0 }
}

/**
 * Other workers that hold slots and have not answered the recall. An answer that did not know the last grant does not
 * count.
 */
async function unresponsiveHolders(
  { ledger }: RateLedgerOptions,
  worker: string,
  { account }: SlotBalance,
  at: number,
) {
  const silent = await ledger.read<{ worker: string }>(
    `select worker from rate_holdings
      where account = ? and worker <> ? and kind = 'held' and granted > returned and recalled_at < ?`,
    [account, worker, at],
  )
  return silent.map(({ worker: holder }) => holder)
}

function recordReport(
  { now, newId }: RateLedgerOptions,
  worker: string,
  balance: SlotBalance,
  limit: number,
): Statement[] {
  const { account, granted, process, run, known_from: knownFrom, cooling } = balance
  const at = now()
  const returned = Math.min(granted, balance.returned)
  const instants = cooling?.map(([after, slots]) => [at + after, slots])
  const resting = paced(balance.resting, limit).map(([after, slots]) => [at + Math.ceil(after * clocksApart), slots])
  const id = newId()
  const free: Statement[] = [
    {
      sql: `update rate_holdings set returned = granted
        where account = ? and kind = 'held' and free_at < ? and returned < granted`,
      args: [account, at],
    },
    { sql: "delete from rate_holdings where account = ? and kind <> 'held' and free_at < ?", args: [account, at] },
  ]
  const isNewRun = 'account = ?1 and worker = ?2 and run < ?3'
  const replaced: Statement[] = [
    {
      sql: `delete from rate_holdings where account = ?1 and kind = 'resting' and holder = ?2 and run >= ?4 and run < ?3
        and exists (select 1 from rate_holdings where ${isNewRun})`,
      args: [account, worker, run, knownFrom],
    },
    {
      sql: `insert into rate_holdings (account, worker, holder, kind, granted, returned, heartbeat_at, free_at, process, run)
        select account, worker || '#' || ?5, worker, 'lost', granted - returned, 0, heartbeat_at, free_at, process, run
        from rate_holdings where account = ?1 and worker = ?2 and granted > returned
          and (run < ?3 and run < ?4 or run = ?3 and process <> ?6)`,
      args: [account, worker, run, knownFrom, id, process],
    },
    {
      sql: `update rate_holdings set returned = granted
        where account = ?1 and worker = ?2 and (run < ?3 or run = ?3 and process <> ?4)`,
      args: [account, worker, run, process],
    },
  ]
  // From the first message of a run, or one that returns slots in use.
  const rested: Statement[] = resting.map(([freeAt, slots], index) => ({
    sql: `insert into rate_holdings (account, worker, holder, kind, granted, returned, heartbeat_at, free_at, process, run)
      select ?1, ?2 || '#' || ?5, ?2, 'resting', ?6, 0, ?7, ?8, ?9, ?3
      where not exists (
        select 1 from rate_holdings where account = ?1 and worker = ?2 and (run > ?3 or run = ?3 and returned >= ?4))`,
    args: [account, worker, run, returned, `${id}-${index}`, slots ?? 0, at, freeAt ?? 0, process],
  }))
  const upsert: Statement = {
    sql: `insert into rate_holdings
        (account, worker, holder, kind, granted, returned, heartbeat_at, free_at, recalled_at, process, run, cooling)
      values (?1, ?2, ?2, 'held', ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce(?10, '[]'))
      on conflict (account, worker) do update set
        recalled_at = iif(excluded.granted >= granted, max(recalled_at, excluded.recalled_at), recalled_at),
        granted = max(granted, excluded.granted),
        returned = min(max(granted, excluded.granted), max(returned, excluded.returned)),
        heartbeat_at = max(heartbeat_at, excluded.heartbeat_at), free_at = max(free_at, excluded.free_at),
        process = excluded.process, run = excluded.run, cooling = coalesce(?10, cooling)
      where run <= excluded.run`,
    args: [
      ...[account, worker, granted, returned, at, at + lostAfterMs, balance.recalled_at, process, run],
      instants === undefined ? null : JSON.stringify(instants),
    ],
  }
  return [...free, ...replaced, ...rested, upsert]
}

/** Spreads excess use over the following minutes: at one instant no more rests than the limit has. */
function paced(uses: readonly Cooling[], limit: number): Cooling[] {
  if (limit === 0) return [...uses]
  return uses.flatMap(([after, slots]): Cooling[] => {
    const minutes = Math.min(maxMinutes, Math.max(1, Math.ceil(slots / limit)))
    return Array.from(
      { length: minutes },
      (_, index): Cooling => [
        after + index * slotMinuteMs,
        index < minutes - 1 ? limit : slots - limit * (minutes - 1),
      ],
    )
  })
}

/**
 * Raises the grant by what is free, in whole slots: numbers are bound as reals, so they are truncated. Resets the
 * answered recall, since the worker has not reported this grant yet.
 */
const grant = (worker: string, { account, want, process }: SlotBalance, limit: number): Statement[] =>
  want === 0
    ? []
    : [
        {
          sql: `with held as (
              select coalesce(sum(granted - returned), 0) as slots,
                coalesce(max(holder <> ?2 and granted > returned), 0) as shared
              from rate_holdings where account = ?1
            ), free as (select ?3 - slots as slots, shared from held), more as (
              select cast(case
                when shared = 0 then slots
                when slots - ?4 < ?3 / 2 then min(slots, ?4)
                else ?4 + (slots - ?4) / 2
              end as integer) as slots from free where slots >= 1
            )
            update rate_holdings set granted = granted + more.slots, recalled_at = 0
              from more where account = ?1 and worker = ?2 and process = ?5 and more.slots > 0`,
          args: [account, worker, limit, want, process],
        },
      ]
