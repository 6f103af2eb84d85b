/**
 * `/v1/usage`: what is used of limits, who holds shares of them, and giving up a lane that is lost. Reading needs
 * `catalog:read`, which those have who run gateways; freeing needs `tokens:write`. A token that is bound to a team or a
 * user sees the accounts of its own tokens and budgets; a token of a team frees nothing, since that is for everybody.
 */
import { z } from 'zod'
import { readCursor, writeCursor } from '../../api/cursor.ts'
import { pageLimit } from '../../api/page.ts'
import { type AnyRoute, route } from '../../api/route.ts'
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import type { Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import { awaitedLanes, resume } from '../lease/allocator/restored-ledger.ts'
import { mostHeld, plainName } from '../lease/lease.ts'
import { seenAccounts } from './visible-limits.ts'

export interface UsageDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  /** Amounts of these accounts were set free. */
  freed(accounts: readonly string[]): void
}

const amount = z.number().int().describe('Requests, or nano-dollars')
const pageQuery = {
  limit: pageLimit,
  cursor: z.string().max(500).optional(),
}

const accountSchema = z.object({
  account: z.string(),
  settled: amount,
  held: amount.describe('Granted to lanes and neither settled nor returned'),
  lanes: z.number().int().describe('Lanes that hold some of it'),
  exhausted_at: z.iso.datetime().nullable(),
})

const laneSchema = z.object({
  lane: z.string(),
  last_beat_at: z.iso.datetime(),
  lost_at: z.iso.datetime().nullable(),
  released_at: z.iso.datetime().nullable(),
  awaited: z.boolean().describe('Nothing is granted to anybody before this lane has said what it holds'),
  held: z.array(z.object({ account: z.string(), amount })),
})

/** A lane that beat within so long is running: what it holds is its own to give back. */
const silentMs = 60_000

export const usageRoutes = (dependencies: UsageDependencies): AnyRoute[] => [
  listAccounts(dependencies),
  listLanes(dependencies),
  releaseLane(dependencies),
  resumeGrants(dependencies),
]

interface AccountRow {
  account: string
  settled: number
  held: number
  lanes: number
  exhausted_at: number | null
}

const listAccounts = ({ state, ledger }: UsageDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/usage/accounts',
    tag: 'Usage',
    summary: 'Lists accounts of limits of which something was used or is held, by name',
    access: 'catalog:read',
    query: z.object({
      ...pageQuery,
      prefix: z.string().max(128).default(''),
    }),
    reply: z.object({ accounts: z.array(accountSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query: { limit, cursor, prefix } }) {
      const seen = await seenAccounts({ state, ledger }, principal)
      const filters = { list: 'usage-accounts', prefix }
      const rows = await ledger.read<AccountRow>(
        `select c.account, min(sum(c.settled), ${mostHeld}) as settled, sum(c.granted - c.returned - c.settled) as held,
           sum(c.granted - c.returned - c.settled > 0) as lanes, u.exhausted_at
         from usage_cells c left join usage_accounts u on u.account = c.account
         where c.account > ? and substr(c.account, 1, length(?)) = ? and ${seen.sql}
         group by c.account order by c.account limit ?`,
        [
          ...[cursor === undefined ? '' : readCursor(cursor, filters, z.string()), prefix, prefix],
          ...[...seen.args, limit + 1],
        ],
      )
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      return {
        reply: {
          accounts: page.map((row) => ({ ...row, exhausted_at: time(row.exhausted_at) })),
          next_cursor: rows.length > limit && last !== undefined ? writeCursor(last.account, filters) : null,
        },
      }
    },
  })

interface LaneRow {
  lane: string
  last_beat_at: number
  lost_at: number | null
  released_at: number | null
  awaited: number
  held: string
}

const laneRows = (seen: string) => `select l.lane, l.last_beat_at, l.lost_at, l.released_at, l.awaited, (
    select json_group_array(json_object('account', c.account, 'amount', c.granted - c.returned - c.settled))
    from usage_cells c where c.lane = l.lane and c.granted - c.returned - c.settled > 0 and ${seen}) as held
  from lanes l`

const listLanes = ({ state, ledger }: UsageDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/usage/lanes',
    tag: 'Usage',
    summary: 'Lists the lanes of gateways with what they hold of limits',
    access: 'catalog:read',
    query: z.object(pageQuery),
    reply: z.object({ lanes: z.array(laneSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query: { limit, cursor } }) {
      const seen = await seenAccounts({ state, ledger }, principal)
      const filters = { list: 'usage-lanes' }
      const after = cursor === undefined ? '' : readCursor(cursor, filters, z.string())
      const rows = await ledger.read<LaneRow>(`${laneRows(seen.sql)} where l.lane > ? order by l.lane limit ?`, [
        ...seen.args,
        after,
        limit + 1,
      ])
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      const next = rows.length > limit && last !== undefined ? writeCursor(last.lane, filters) : null
      return { reply: { lanes: page.map(laneRecord), next_cursor: next } }
    },
  })

/**
 * What a lane holds that never comes back becomes free. Only for one that has been silent: a lane that still runs would
 * go on spending what others then have too, so it is told to end (`lane_rolled_back`) should it return.
 */
const releaseLane = (dependencies: UsageDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/usage/release',
    tag: 'Usage',
    summary: 'Frees what a lost lane holds of limits; the lane never comes back',
    access: 'tokens:write',
    wholeOrganization: true,
    body: z.strictObject({ lane: z.string().min(1).max(300) }),
    reply: laneSchema,
    async handle({ principal, body: { lane }, requestId }) {
      const { ledger, state, recorder, clock, newId } = dependencies
      const row = await requireLane(ledger, lane)
      if (row.released_at !== null) return { reply: laneRecord(row) }
      if (row.last_beat_at > clock.now() - silentMs)
        throw new Failure('conflict', { message: stillRunning, param: 'lane' })
      const freed = laneRecord(row).held
      const event = controlPlaneEvent({
        ...{ type: 'usage.released', principal, requestId, clock, newId, details: { lane, amounts: freed } },
        configVersion: await versionNow(state),
      })
      await recorder.change({
        event,
        state: [],
        ledger: [
          {
            sql: `insert into guards (holds) select 0 where not exists (
              select 1 from lanes where lane = ? and released_at is null and last_beat_at = ?)`,
            args: [lane, row.last_beat_at],
          },
          {
            sql: 'update lanes set released_at = ?, stream_id = ?, awaited = 0 where lane = ?',
            args: [clock.now(), `released-${newId()}`, lane],
          },
          { sql: 'update usage_cells set returned = granted - settled where lane = ?', args: [lane] },
        ],
      })
      dependencies.freed(freed.map(({ account }) => plainName(account)))
      return { reply: laneRecord(await requireLane(ledger, lane)) }
    },
  })

/** After the ledger was restored from an older copy: what lanes hold that have not come back is not waited for. */
const resumeGrants = ({ ledger, state, recorder, clock, newId }: UsageDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/usage/resume',
    tag: 'Usage',
    summary: 'Grants again from a restored ledger, without the lanes that have not said what they hold',
    access: 'tokens:write',
    wholeOrganization: true,
    body: z.strictObject({}),
    reply: z.object({ lanes: z.array(z.string()).describe('Those that were waited for') }),
    async handle({ principal, requestId }) {
      const lanes = (await awaitedLanes(ledger)).map(({ lane }) => lane)
      if (lanes.length === 0) return { reply: { lanes } }
      const event = controlPlaneEvent({
        ...{ type: 'usage.released', principal, requestId, clock, newId, details: { resumed: true, lanes } },
        configVersion: await versionNow(state),
      })
      await recorder.change({ event, state: [], ledger: [resume(clock.now())] })
      return { reply: { lanes } }
    },
  })

const stillRunning = 'The lane beat within the last minute: stop its gateway, or wait until it is silent'

async function requireLane(ledger: Database, lane: string): Promise<LaneRow> {
  const [row] = await ledger.read<LaneRow>(`${laneRows('true')} where l.lane = ?`, [lane])
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such lane' })
  return row
}

const heldSchema = z.array(z.object({ account: z.string(), amount: z.number().int() }))

const laneRecord = ({ lane, last_beat_at, lost_at, released_at, awaited, held }: LaneRow) => ({
  lane,
  last_beat_at: timestamp(last_beat_at),
  lost_at: time(lost_at),
  released_at: time(released_at),
  awaited: awaited === 1,
  held: heldSchema.parse(JSON.parse(held)),
})

const time = (at: number | null): string | null => (at === null ? null : timestamp(at))
