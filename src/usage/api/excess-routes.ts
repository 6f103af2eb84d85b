/** `/v1/usage/excesses`: what providers charged beyond their list prices, and forgetting it once the price is mended. */
import { and, desc, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Reader } from '../../store/open.ts'
import { isOneOf, query } from '../../store/query.ts'
import { priceExcesses } from '../../store/schema/ledger/usage.ts'
import { providers } from '../../store/schema/state/catalog.ts'
import { forgetExcess } from '../excess.ts'
import type { UsageDependencies } from './usage-routes.ts'

type ExcessDependencies = Omit<UsageDependencies, 'freed'>

const excessSchema = z.object({
  provider_id: z.string(),
  provider: z.string().describe('Its name; its id where the provider is gone'),
  model: z.string().describe("The provider's name of the model; `*` stands for all that are not listed themselves"),
  excess: z.number().describe('US dollars that one request was charged beyond its bound, at most'),
  token_id: z.string().nullable().describe('The token whose request it was'),
  at: z.iso.datetime(),
})

type ExcessRow = typeof priceExcesses.$inferSelect

async function recordsOf(state: Reader, rows: readonly ExcessRow[]) {
  const ids = rows.map(({ providerId }) => providerId)
  const { id, name } = providers
  const named = await query(state).select({ id, name }).from(providers).where(isOneOf(id, ids))
  const nameOf = new Map(named.map((row) => [row.id, row.name]))
  return rows.map(({ providerId, model, tokenId, amount, at }) => ({
    ...{ provider_id: providerId, provider: nameOf.get(providerId) ?? providerId, model },
    ...{ token_id: tokenId, excess: fromNano(amount), at: timestamp(at) },
  }))
}

export const excessRoutes = (dependencies: ExcessDependencies) => {
  const { ledger, state, recorder, clock, newId } = dependencies
  return new Elysia({ name: 'excess' })
    .use(conventions)
    .get(
      '/v1/usage/excesses',
      async () => {
        const rows = await query(ledger).select().from(priceExcesses).orderBy(desc(priceExcesses.at)).limit(1000)
        return { excesses: await recordsOf(state, rows), next_cursor: null }
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
        const [record] = row === undefined ? [] : await recordsOf(state, [row])
        if (record === undefined) {
          throw new Failure('not_found', { message: 'No excess is known of this provider and model' })
        }
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
