/**
 * The control plane's side of slots (rate.ts): for each limit never more are out than it has. Counters in the ledger, as
 * those of money are, raised before the answer that says so.
 *
 * 1. A lane that has not been heard of for its ttl, a minute and one percent more can have used none of its slots within
 *    the last minute: they are free again. Time may free these only, never money.
 * 2. A process that begins anew does not know when its slots were used: they are put aside as those of a lost lane.
 * 3. Free slots are granted: all of them to a lane that is alone with the limit, else what is wanted, and half of the
 *    rest while more than half of the limit is free. Where too few are, the other holders are called on to return what is
 *    cold, and waited for until each has answered, for 2 s at most: so nobody is refused while a slot lies cold elsewhere.
 *    A lane that is granted some while another waits is called on too.
 * 4. With less than was wanted goes when more can be had: every holder says when its slots in use are cold.
 */
import { z } from 'zod'
import type { Database, Statement } from '../store/open.ts'
import { type Cooling, slotMinuteMs, slotTtlMs } from './rate.ts'
import type { SlotCell, SlotsReply } from './rate-wire.ts'

/** By when the slots of a lane that was last heard of are cold; one percent is for clocks that run apart. */
export const lostAfterMs = Math.ceil((slotTtlMs + slotMinuteMs) * 1.01)
const callAgainMs = 100
const coolingSchema = z.array(z.tuple([z.number(), z.number()]))
/** When it is looked again whether the other holders have answered, milliseconds after each other: 2 s in all. */
const recallWaits = [5, 10, 20, 40, 80, 160, 320, 640, 725]

export interface RateLedgerOptions {
  state: Pick<Database, 'read'>
  ledger: Pick<Database, 'read' | 'write'>
  now(): number
  newId(): string
  sleep(milliseconds: number): Promise<void>
  /** Asks lanes, as far as they can be reached, to return cold slots of an account; `at` names the call. */
  recall(account: string, want: number, lanes: readonly string[], at: number): void
}

/** Takes in what a lane says of its slots, and grants what it wants as far as there is. */
export async function answerSlots(
  options: RateLedgerOptions,
  lane: string,
  cells: readonly SlotCell[],
): Promise<SlotsReply> {
  return { cells: await Promise.all(cells.map((cell) => answerCell(options, lane, cell))) }
}

async function answerCell(
  options: RateLedgerOptions,
  lane: string,
  cell: SlotCell,
): Promise<SlotsReply['cells'][number]> {
  const limit = cell.want === 0 ? 0 : await limitOf(options.state, cell.account)
  await options.ledger.write([...takeIn(options, lane, cell), ...grant(lane, cell, limit)])
  let held = await holding(options, lane, cell)
  if (limit === 0 || held.granted - cell.granted >= cell.want) return held
  let call = await newCall(options, lane, cell)
  let silent = await callOn(options, lane, cell, call)
  for (const wait of recallWaits) {
    if (silent.length === 0) break
    await options.sleep(wait)
    // In this order: what was returned by the time that all were heard is granted.
    silent = await callOn(options, lane, cell, call)
    await options.ledger.write(grant(lane, { ...cell, want: cell.want - (held.granted - cell.granted) }, limit))
    held = await holding(options, lane, cell)
    if (held.granted - cell.granted >= cell.want) return held
    if (silent.length > 0) continue
    // Others took what was returned to this call: whoever returned it may have more.
    const next = await newCall(options, lane, cell)
    if (next.grantedToOthers === call.grantedToOthers) break
    call = next
    silent = await callOn(options, lane, cell, call)
  }
  return { ...held, cooling: await coolingOf(options, lane, cell, limit, call.at) }
}

interface SlotCall {
  /** Its name. */
  at: number
  grantedToOthers: number
  /** When each holder was called on. */
  said: Map<string, number>
}

async function newCall({ ledger, now }: RateLedgerOptions, lane: string, { account }: SlotCell): Promise<SlotCall> {
  const [row] = await ledger.read<{ granted: number }>(
    'select coalesce(sum(granted), 0) as granted from rate_holdings where account = ? and lane <> ?',
    [account, lane],
  )
  return { at: nameOfCall(now()), grantedToOthers: row?.granted ?? 0, said: new Map() }
}

/** Calls on holders that have not followed, each again after a while: a message may be lost. Gives who they are. */
async function callOn(
  options: RateLedgerOptions,
  lane: string,
  cell: SlotCell,
  { at, said }: SlotCall,
): Promise<string[]> {
  const silent = await silentHolders(options, lane, cell, at)
  const now = options.now()
  const due = silent.filter((holder) => now - (said.get(holder) ?? Number.NEGATIVE_INFINITY) >= callAgainMs)
  for (const holder of due) said.set(holder, now)
  if (due.length > 0) options.recall(cell.account, cell.want, due, at)
  return silent
}

/**
 * When more slots can be had than now, in milliseconds from now: those in use when they are cold; all of a lane that has
 * not followed the call, and of those put aside, when it is lost. What is held beyond a limit that was lowered is not.
 */
async function coolingOf(
  { ledger, now }: RateLedgerOptions,
  lane: string,
  { account }: SlotCell,
  limit: number,
  at: number,
): Promise<Cooling[]> {
  const rows = await ledger.read<{ held: number; beat_at: number; told: number; cooling: string }>(
    `select granted - returned as held, beat_at, (lane = ? or recalled_at >= ?) and lane not like '%#%' as told,
       cooling
     from rate_holdings where account = ? and granted > returned`,
    [lane, at, account],
  )
  const instants = rows.flatMap(({ held, beat_at: beatAt, told, cooling }): Cooling[] =>
    told === 1 ? coolingSchema.parse(JSON.parse(cooling)) : [[beatAt + lostAfterMs, held]],
  )
  let beyond = rows.reduce((sum, { held }) => sum + held, -limit)
  return instants
    .sort(([first], [second]) => first - second)
    .flatMap(([instant, slots]): Cooling[] => {
      const kept = Math.min(slots, Math.max(0, beyond))
      beyond -= kept
      return slots > kept ? [[Math.max(0, Math.ceil(instant - now())), slots - kept]] : []
    })
}

let calls = 0

/** A later call has a larger name; calls of one millisecond have different ones, or one would pass for the other's answer. */
const nameOfCall = (now: number): number => {
  calls = (calls + 1) % 1024
  return Math.floor(now) * 1024 + calls
}

async function holding({ ledger }: RateLedgerOptions, lane: string, { account }: SlotCell) {
  const [row] = await ledger.read<{ granted: number; returned: number }>(
    'select granted, returned from rate_holdings where account = ? and lane = ?',
    [account, lane],
  )
  const cooling: Cooling[] = []
  return { account, granted: row?.granted ?? 0, returned: row?.returned ?? 0, cooling }
}

/**
 * The other lanes that hold slots and have not followed the call; a lane that did not know yet of all it was granted has
 * not. What is put aside comes back by time alone.
 */
async function silentHolders({ ledger }: RateLedgerOptions, lane: string, { account }: SlotCell, at: number) {
  const silent = await ledger.read<{ lane: string }>(
    `select lane from rate_holdings
      where account = ? and lane <> ? and lane not like '%#%' and granted > returned and recalled_at < ?`,
    [account, lane, at],
  )
  return silent.map(({ lane: holder }) => holder)
}

function takeIn({ now, newId }: RateLedgerOptions, lane: string, cell: SlotCell): Statement[] {
  const { account, granted, returned, process, cooling } = cell
  const at = now()
  const instants = cooling?.map(([after, slots]) => [at + after, slots])
  const free: Statement = {
    sql: 'update rate_holdings set returned = granted where account = ? and beat_at < ? and returned < granted',
    args: [account, at - lostAfterMs],
  }
  /** What was put aside and is free again leaves no row behind. */
  const dropped: Statement = {
    sql: "delete from rate_holdings where account = ? and lane like '%#%' and returned = granted",
    args: [account],
  }
  const setAside: Statement[] = [
    {
      sql: `insert into rate_holdings (account, lane, granted, returned, beat_at, process)
        select account, lane || '#' || ?, granted - returned, 0, ?, process from rate_holdings
        where account = ? and lane = ? and granted > returned and process <> ?`,
      args: [newId(), at, account, lane, process],
    },
    {
      sql: 'update rate_holdings set returned = granted where account = ? and lane = ? and process <> ?',
      args: [account, lane, process],
    },
  ]
  const heard: Statement = {
    sql: `insert into rate_holdings (account, lane, granted, returned, beat_at, recalled_at, process, cooling)
      values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8, '[]'))
      on conflict (account, lane) do update set
        recalled_at = iif(excluded.granted >= granted, max(recalled_at, excluded.recalled_at), recalled_at),
        granted = max(granted, excluded.granted),
        returned = min(max(granted, excluded.granted), max(returned, excluded.returned)),
        beat_at = max(beat_at, excluded.beat_at), process = excluded.process, cooling = coalesce(?8, cooling)`,
    args: [
      ...[account, lane, granted, Math.min(granted, returned), at, cell.recalled_at, process],
      instants === undefined ? null : JSON.stringify(instants),
    ],
  }
  return [free, dropped, ...setAside, heard]
}

/**
 * Raises what the lane was granted by what is free, in whole slots: numbers are bound as reals, and halves are no count.
 * Of what it got now it has not told anybody what it needs: it has followed no call.
 */
const grant = (lane: string, { account, want }: SlotCell, limit: number): Statement[] =>
  want === 0
    ? []
    : [
        {
          sql: `with held as (
              select coalesce(sum(granted - returned), 0) as slots,
                coalesce(max(lane <> ?2 and granted > returned), 0) as shared
              from rate_holdings where account = ?1
            ), free as (select ?3 - slots as slots, shared from held), more as (
              select cast(case
                when shared = 0 then slots
                when slots - ?4 < ?3 / 2 then min(slots, ?4)
                else ?4 + (slots - ?4) / 2
              end as integer) as slots from free where slots >= 1
            )
            update rate_holdings set granted = granted + more.slots, recalled_at = 0
              from more where account = ?1 and lane = ?2 and more.slots > 0`,
          args: [account, lane, limit, want],
        },
      ]

const limitQueries: Readonly<Record<string, string>> = {
  'group/requests': 'select requests_per_minute as slots from consumer_groups where id = ? and deleted = 0',
  'group/tokens': 'select tokens_per_minute as slots from consumer_groups where id = ? and deleted = 0',
  'access/requests': 'select requests_per_minute as slots from access_policies where id = ? and deleted = 0',
  'access/tokens': 'select tokens_per_minute as slots from access_policies where id = ? and deleted = 0',
  'token/requests': 'select rate_limit_rpm as slots from accounts where id = ? and deleted = 0',
  'token/tokens': 'select rate_limit_tpm as slots from accounts where id = ? and deleted = 0',
}

/** How many slots a limit has, by the name of its account, `group/<id>/requests`; 0 where there is no such limit. */
async function limitOf(state: Pick<Database, 'read'>, account: string): Promise<number> {
  const [kind = '', id = '', unit = ''] = account.split('/')
  const query = limitQueries[`${kind}/${unit}`]
  if (query === undefined) return 0
  const [row] = await state.read<{ slots: number | null }>(query, [id])
  return row?.slots ?? 0
}
