/** `/v1/usage/excesses`: what providers charged beyond their list prices, and forgetting it once the price is mended. */
import { and, desc, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import { query } from '../../store/query.ts'
import { priceExcesses } from '../../store/schema/ledger/usage.ts'
import { forgetExcess } from '../excess.ts'
import type { UsageDependencies } from './usage-routes.ts'

type ExcessDependencies = Omit<UsageDependencies, 'freed'>

const excessSchema = z.object({
  provider_id: z.string(),
  model: z.string().describe("The provider's name of the model; `*` stands for all that are not listed themselves"),
  excess: z.number().describe('US dollars that one request was charged beyond its bound, at most'),
  token_id: z.string().nullable().describe('The token whose request it was'),
  at: z.iso.datetime(),
})

type ExcessRow = typeof priceExcesses.$inferSelect

const recordOf = ({ providerId, model, tokenId, amount, at }: ExcessRow) => ({
  provider_id: providerId,
  model,
  token_id: tokenId,
  excess: fromNano(amount),
  at: timestamp(at),
})

export const excessRoutes = (dependencies: ExcessDependencies) => {
  const { ledger, state, recorder, clock, newId } = dependencies
  return new Elysia({ name: 'excess' })
    .use(conventions)
    .get(
      '/v1/usage/excesses',
      async () => {
        const rows = await query(ledger).select().from(priceExcesses).orderBy(desc(priceExcesses.at)).limit(1000)
        return { excesses: rows.map(recordOf), next_cursor: null }
      },
      {
        access: 'catalog:read',
        wholeOrganization: true,
        query: z.strictObject({}),
        response: z.object({ excesses: z.array(excessSchema), next_cursor: z.null().describe('All are on one page') }),
        detail: {
          tags: ['Usage'],
          summary: 'Lists what providers charged beyond the bound of a request; gateways add it to later bounds',
        },
      },
    )
    .post(
      '/v1/usage/forget-excess',
      async ({ principal, body: { provider_id: providerId, model }, requestId }) => {
        const named = and(eq(priceExcesses.providerId, providerId), eq(priceExcesses.model, model))
        const row = await query(ledger).select().from(priceExcesses).where(named).get()
        if (row === undefined) {
          throw new Failure('not_found', { message: 'No excess is known of this provider and model' })
        }
        const record = recordOf(row)
        const details = { provider_id: providerId, model, forgotten: record.excess }
        const event = controlPlaneEvent({
          ...{ type: 'usage.excess_forgotten', principal, requestId, clock, newId, details },
          configVersion: await versionNow(state),
        })
        await recorder.change({ event, ...forgetExcess(providerId, model) })
        return record
      },
      {
        failures: [404],
        access: 'catalog:write',
        wholeOrganization: true,
        body: z.strictObject({ provider_id: z.string().min(1).max(64), model: z.string().min(1).max(300) }),
        response: excessSchema,
        detail: {
          tags: ['Usage'],
          summary: 'Forgets what a provider charged beyond the bound of a request, after its price was corrected',
        },
      },
    )
}
