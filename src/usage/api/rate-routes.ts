/** `GET /v1/usage/rates`: who holds the slots of limits a minute, and until when those of absent workers are held. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { readCursor, writeCursor } from '../../api/cursor.ts'
import { pageLimit } from '../../api/page.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { slotTtlMs } from '../rate/rate.ts'

export interface RateDependencies {
  ledger: Pick<Database, 'read'>
  clock: Pick<Clock, 'now'>
}

const slots = z.number().int()
const rateSchema = z.object({
  account: z.string().describe('`group/…`, `access/…`, `token/…` or `server/…`, then `/requests` or `/tokens`'),
  held: slots.describe('Requests or tokens that gateway workers hold, used or not'),
  resting: slots.describe('Used within the last minute and returned since: they come back when the minute is over'),
  absent: slots.describe('Held by workers that were not heard of for 30 s, or whose host crashed'),
  absent_until: z.iso.datetime().nullable().describe('By when those come back, where the workers do not'),
})

interface RateRow {
  account: string
  held: number
  resting: number
  absent: number
  absent_until: number | null
}

/** The worker is unreachable, or the uses of its earlier process are unknown. */
const isAbsent = "(kind = 'lost' or kind = 'held' and heartbeat_at < ?2)"
const left = 'granted - returned'

export const rateRoutes = ({ ledger, clock }: RateDependencies) =>
  new Elysia({ name: 'rate' }).use(conventions).get(
    '/v1/usage/rates',
    async ({ query: { limit, cursor, prefix, absent } }) => {
      const filters = { list: 'usage-rates', prefix, absent }
      const now = clock.now()
      const rows = await ledger.read<RateRow>(
        `select account,
           sum(iif(kind = 'held' and not ${isAbsent}, ${left}, 0)) as held,
           sum(iif(kind = 'resting', ${left}, 0)) as resting,
           sum(iif(${isAbsent}, ${left}, 0)) as absent,
           max(iif(${isAbsent}, free_at, null)) as absent_until
         from rate_holdings
         where ${left} > 0 and free_at > ?1 and account > ?3 and substr(account, 1, length(?4)) = ?4
         group by account having ?5 = 0 or absent > 0 order by account limit ?6`,
        [
          ...[now, now - slotTtlMs, cursor === undefined ? '' : readCursor(cursor, filters, z.string()), prefix],
          ...[absent === undefined ? 0 : 1, limit + 1],
        ],
      )
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      return {
        rates: page.map((row) => ({
          ...row,
          absent_until: row.absent_until === null ? null : timestamp(row.absent_until),
        })),
        next_cursor: rows.length > limit && last !== undefined ? writeCursor(last.account, filters) : null,
      }
    },
    {
      access: 'catalog:read',
      wholeOrganization: true,
      query: z.strictObject({
        limit: pageLimit,
        cursor: z.string().max(500).optional(),
        prefix: z.string().max(128).default(''),
        absent: z.literal('true').optional().describe('Only limits of which absent workers hold some'),
      }),
      response: z.object({ rates: z.array(rateSchema), next_cursor: z.string().nullable() }),
      detail: { tags: ['Usage'], summary: 'Lists the limits a minute of which something is held, by name' },
    },
  )
