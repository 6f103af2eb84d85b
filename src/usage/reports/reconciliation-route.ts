/** `/v1/usage/reconciliation`: a provider's invoice beside what was booked here, with each difference named. */
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import { storedTargetSchema } from '../../providers/catalog/model-resource.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { monthSchema } from './cost-routes.ts'
import { readInvoice } from './invoice.ts'
import { monthAt, requireBegun } from './month-report.ts'
import { readCosts } from './read-costs.ts'
import { type Booked, differenceKinds, reconcile } from './reconcile.ts'

const amountsSchema = z
  .object({
    cost: z.number().nullable().describe('US dollars; null where the file has no money'),
    input_tokens: z.number().nullable(),
    output_tokens: z.number().nullable(),
  })
  .nullable()

const reconciliationSchema = z.object({
  form: z.string().describe('As what the file was read'),
  month: z.string(),
  lines: z.number().int().describe('Of the file that are of the month'),
  other_months: z.number().int().describe('Lines of the file that are of other months and were left out'),
  invoiced: amountsSchema,
  booked: amountsSchema,
  alike: z.number().int().describe('Pairs of a day and a model that do not differ'),
  differences: z
    .array(
      z.object({
        kind: z.enum(differenceKinds),
        day: z.string().nullable(),
        model: z.string().nullable(),
        invoiced: amountsSchema,
        booked: amountsSchema,
      }),
    )
    .describe('The largest first, at most 1000'),
  left_out: z.number().int().describe('Differences that are not listed'),
})
export type ReconciliationReport = z.infer<typeof reconciliationSchema>

const mostDifferences = 1000
const namesShown = 50

interface ReconciliationDependencies {
  state: Database
  ledger: Database
  clock: Clock
}

export const reconciliationRoute = ({ state, ledger, clock }: ReconciliationDependencies) =>
  new Elysia({ name: 'reconciliation' }).use(conventions).post(
    '/v1/usage/reconciliation',
    async ({ body: { month, provider, csv, tolerance_percent, tolerance } }) => {
      requireBegun(month, clock.now())
      const { form, lines } = readInvoice(csv)
      const ofMonth = lines.filter(({ day }) => day === null || day.startsWith(month))
      await foldRollups(ledger, 40)
      const booked = await bookedOf({ state, ledger }, month, provider)
      const { differences, ...sums } = reconcile(ofMonth, booked, { share: tolerance_percent / 100, amount: tolerance })
      return {
        ...{ form, month, lines: ofMonth.length, other_months: lines.length - ofMonth.length },
        ...{ invoiced: shown(sums.invoiced), booked: shown(sums.booked), alike: sums.alike },
        differences: differences.slice(0, mostDifferences).map(({ kind, day, model, invoiced, booked: ours }) => ({
          ...{ kind, day, model, invoiced: shown(invoiced), booked: shown(ours) },
        })),
        left_out: Math.max(0, differences.length - mostDifferences),
      }
    },
    {
      access: 'events:read',
      wholeOrganization: true,
      body: z.strictObject({
        month: monthSchema,
        provider: z.string().min(1).max(200).describe('The name of the provider here'),
        csv: z.string().describe('The file, as text'),
        tolerance_percent: z.number().min(0).max(100).default(1).describe('What is not named as a difference'),
        tolerance: z.number().min(0).max(1_000_000).default(0.01).describe('The same in US dollars'),
      }),
      response: reconciliationSchema,
      detail: {
        tags: ['Usage'],
        summary: "Compares a provider's invoice, a CSV file, with what was booked, and names the differences",
      },
    },
  )

type Amounts = { cost: number | null; inputTokens: number | null; outputTokens: number | null } | null

const shown = (amounts: Amounts) =>
  amounts === null
    ? null
    : { cost: amounts.cost, input_tokens: amounts.inputTokens, output_tokens: amounts.outputTokens }

/**
 * By the provider's names of the models, as far as the catalog has them. Throws `invalid_parameter` for a provider that
 * the catalog does not have and for which nothing was booked in the month.
 */
async function bookedOf(
  { state, ledger }: Pick<ReconciliationDependencies, 'state' | 'ledger'>,
  month: string,
  provider: string,
): Promise<Booked[]> {
  const upstreamName = await upstreamNames(state, provider)
  const inCatalog = await query(state).select({ name: providers.name }).from(providers).where(eq(providers.deleted, 0))
  const known = new Set(inCatalog.map(({ name }) => name))
  const booked: Booked[] = []
  const visibility = { teams: 'every' as const, ownTokens: [] }
  for await (const rows of readCosts(ledger, { ...monthAt(month), visibility, withDimensions: false })) {
    for (const row of rows) {
      if (row.provider !== '') known.add(row.provider)
      if (row.provider !== provider) continue
      booked.push({
        ...{ day: new Date(row.at).toISOString().slice(0, 10), model: upstreamName(row.model) },
        ...{ cost: fromNano(row.cost), inputTokens: row.input_tokens, outputTokens: row.output_tokens },
      })
    }
  }
  if (known.has(provider)) return booked
  const names = [...known].toSorted().slice(0, namesShown).join(', ') || 'none yet'
  throw new Failure('invalid_parameter', {
    param: 'provider',
    message: `There is no provider ${JSON.stringify(provider)}, and nothing was booked for one in ${month}. Providers are: ${names}`,
  })
}

/** What a provider calls a model of the catalog: a model may have targets at several providers, each by its own name. */
async function upstreamNames(state: Database, provider: string): Promise<(model: string) => string> {
  const { id, providerId, upstreamModel, targets } = models
  const rows = await query(state).select({ id, providerId, upstreamModel, targets }).from(models)
  const named = await query(state).select({ id: providers.id }).from(providers).where(eq(providers.name, provider))
  const ids = new Set(named.map((row) => row.id))
  const names = new Map(
    rows.map((model) => {
      const all =
        model.targets === null
          ? [{ provider_id: model.providerId, upstream_model: model.upstreamModel }]
          : storedTargets.parse(JSON.parse(model.targets))
      return [model.id, all.find((target) => ids.has(target.provider_id))?.upstream_model ?? model.id]
    }),
  )
  return (model) => names.get(model) ?? model
}

const storedTargets = z.array(storedTargetSchema)
