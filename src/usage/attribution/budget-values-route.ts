/** `/v1/budgets/{id}/values`: how the values of a dimension stand that have a budget each. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { openCursor, sealCursor } from '../../api/cursor.ts'
import { pageQuery } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { Failure } from '../../failure.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { budgetResource, windowSchema } from '../api/budget-resource.ts'
import { readSettled } from '../api/stored-limit.ts'
import { visibleBudget } from '../api/visible-limits.ts'
import { bookedBudget, windowAt, windowOf } from '../window.ts'
import { longestValue, plainValue, valueDigest } from './dimension.ts'
import { readValues, type ValueUse } from './value-accounts.ts'

interface Dependencies {
  state: Database
  ledger: Database
  clock: Clock
}

const valueSchema = z.object({
  value: z
    .string()
    .nullable()
    .describe('Null for requests without a value, and for what was lost with a host before anything else was booked'),
  account: z.string().describe('Its account in usage'),
  spend: z.number().describe('US dollars booked in the present window; requests still running are not yet'),
  remaining: z.number().describe('US dollars of max_budget that are left to it'),
  resets_at: z.iso.datetime().nullable().describe('When the next window begins; null for total'),
})

const page = z.object({ values: z.array(valueSchema), next_cursor: z.string().nullable() })
export type BudgetValues = z.infer<typeof page>

const position = z.strictObject({ settled: z.number().int(), account: z.string() })

export const budgetValuesRoute = ({ state, ledger, clock }: Dependencies) =>
  new Elysia({ name: 'budget-values' }).use(conventions).get(
    '/v1/budgets/:id/values',
    async ({ principal, params: { id }, query: { limit, cursor, value: asked } }): Promise<BudgetValues> => {
      const { per, maxBudget, window: length } = await visibleBudget({ state, ledger }, id, principal)
      if (per === null) {
        const message = 'This budget is one amount: only a budget with per has values'
        throw new Failure('invalid_parameter', { param: 'id', message })
      }
      const now = clock.now()
      const windowName = windowSchema.parse(length)
      const end = windowAt(windowName, now)?.end
      const show = (each: ValueUse) => ({
        ...{ value: each.value, account: each.account, spend: fromNano(each.settled) },
        remaining: fromNano(Math.max(0, maxBudget - each.settled)),
        resets_at: end === undefined ? null : timestamp(end),
      })
      const windowOfBudget = windowOf(bookedBudget(id, windowName, now).booked)
      if (asked !== undefined) {
        const value = plainValue(asked)
        const account = `budget/${id}/${valueDigest(value)}${windowOfBudget}`
        const [booked] = await readSettled(ledger, [account])
        const named = value === '' ? null : value
        return { values: [show({ account, value: named, settled: booked?.settled ?? 0 })], next_cursor: null }
      }
      const filters = { list: 'budget-values', id, window: windowOfBudget }
      const after = cursor === undefined ? null : { value: null, ...openCursor(cursor, filters, position) }
      const rows = await readValues(ledger, { budget: id, window: windowOfBudget, after, count: limit + 1 })
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      const hasMore = rows.length > limit && last !== undefined
      return {
        values: shown.map(show),
        next_cursor: hasMore ? sealCursor({ settled: last.settled, account: last.account }, filters) : null,
      }
    },
    {
      access: budgetResource.access.read,
      failures: [404],
      params: idParams,
      query: z.strictObject({
        ...pageQuery,
        value: z
          .string()
          .max(longestValue)
          .optional()
          .describe('Only this value, also where it spent nothing; empty: requests without a value'),
      }),
      response: page,
      detail: {
        tags: [budgetResource.tag],
        summary: 'Lists the values of a budget for each value of a dimension, those that spent most first',
      },
    },
  )
