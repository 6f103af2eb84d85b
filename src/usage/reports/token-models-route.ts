/** `/v1/tokens/{id}/models`: which models a token used, day by day, from the daily sums of requests. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { idParams } from '../../api/resource.ts'
import { requireUntilAfter, sinceInstant, sinceSchema, untilSchema } from '../../events/query/since.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import { Failure } from '../../failure.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { requireToken } from '../../tokens/visibility.ts'
import { dayMs } from './month-report.ts'
import { type CostSums, readCosts } from './read-costs.ts'

/** How many rounds of arrivals are added to the sums before they are read. */
const turnsBeforeReading = 20
const mostDays = 366
/** Models beyond these are summed up: a caller may make names up. */
const modelsShown = 7

const sums = {
  requests: z.number().int(),
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cost: z.number().describe('US dollars'),
}
const tokenModelsSchema = z.object({
  since: z.iso.datetime().describe('Where the first day begins'),
  until: z.iso.datetime(),
  step: z.literal('day'),
  models: z
    .array(
      z.object({
        model: z.string().nullable().describe(`Null: all models beside the ${modelsShown} with most requests`),
        ...sums,
        days: z.array(z.object({ at: z.iso.datetime(), ...sums })).describe('Days without requests are left out'),
      }),
    )
    .describe('Most requests first'),
})
export type TokenModels = z.infer<typeof tokenModelsSchema>

export const tokenModelsRoute = ({ ledger, clock }: { ledger: Database; clock: Clock }) =>
  new Elysia({ name: 'token-models' }).use(conventions).get(
    '/v1/tokens/:id/models',
    async ({ principal, params: { id }, query }): Promise<TokenModels> => {
      const now = clock.now()
      const asked = sinceInstant(query.since, now)
      requireUntilAfter(asked, query.until)
      const from = asked - (asked % dayMs)
      const until = Math.min(now + 1, query.until === undefined ? now + 1 : Date.parse(query.until))
      if (until - from > mostDays * dayMs) {
        throw new Failure('invalid_parameter', { param: 'since', message: `Ask for at most ${mostDays} days` })
      }
      await requireToken(ledger, principal, id)
      await foldRollups(ledger, turnsBeforeReading)
      const visibility = await visibilityFor(ledger, principal)
      const byModel = new Map<string, Map<number, CostSums>>()
      const window = { from, until, visibility, withDimensions: false, token: id }
      for await (const rows of readCosts(ledger, window)) {
        for (const { at, model, ...row } of rows) {
          const days = byModel.get(model) ?? new Map<number, CostSums>()
          byModel.set(model, days.set(at, added(days.get(at) ?? none, row)))
        }
      }
      return { since: timestamp(from), until: timestamp(until), step: 'day', models: modelsOf(byModel) }
    },
    {
      access: 'events:read',
      failures: [404],
      params: idParams,
      query: z.strictObject({ since: sinceSchema, until: untilSchema.optional().describe('RFC 3339, exclusive') }),
      response: tokenModelsSchema,
      detail: { tags: ['Tokens'], summary: 'Returns which models a token used, by day, from stored sums' },
    },
  )

const none: CostSums = { requests: 0, input_tokens: 0, output_tokens: 0, cost: 0 }

const added = (one: CostSums, other: CostSums): CostSums => ({
  requests: one.requests + other.requests,
  input_tokens: one.input_tokens + other.input_tokens,
  output_tokens: one.output_tokens + other.output_tokens,
  cost: one.cost + other.cost,
})

const inDollars = (sums: CostSums) => ({ ...sums, cost: fromNano(sums.cost) })

function modelsOf(byModel: ReadonlyMap<string, ReadonlyMap<number, CostSums>>): TokenModels['models'] {
  const all = [...byModel]
    .map(([model, days]) => ({ model, days, total: [...days.values()].reduce(added, none) }))
    .toSorted((one, other) => other.total.requests - one.total.requests)
  const shown = all.slice(0, modelsShown).map(({ model, days }) => modelOf(model, days))
  const others = new Map<number, CostSums>()
  for (const { days } of all.slice(modelsShown)) {
    for (const [at, sums] of days) others.set(at, added(others.get(at) ?? none, sums))
  }
  return others.size === 0 ? shown : [...shown, modelOf(null, others)]
}

const modelOf = (model: string | null, days: ReadonlyMap<number, CostSums>): TokenModels['models'][number] => ({
  model,
  ...inDollars([...days.values()].reduce(added, none)),
  days: [...days]
    .toSorted(([one], [other]) => one - other)
    .map(([at, sums]) => ({ at: timestamp(at), ...inDollars(sums) })),
})
