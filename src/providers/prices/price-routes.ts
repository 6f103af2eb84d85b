/** `GET /v1/catalog/models/{id}/price`: a model's price and its source, as gateways calculate it. */
import { and, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Reader } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { pricedProvider } from '../catalog/effective-prices.ts'
import { namedProviders } from '../presets/model-prefix.ts'
import { PriceBook, type PricedModel } from './price-book.ts'
import { compilePriceText, shownPriceSchema, showPrice } from './price-record.ts'

interface PriceDependencies {
  state: Reader
  clock: Pick<Clock, 'now'>
}

const shownTermsSchema = z.object({
  model: z.string(),
  provider: z.string(),
  upstream_model: z.string(),
  price: shownPriceSchema.nullable().describe('Null where nobody says what it costs: tokens with a budget are refused'),
  context_window: z.number().int().nullable(),
  max_output_tokens: z.number().int().nullable(),
})

const providerTerms = {
  name: providers.name,
  id: providers.id,
  kind: providers.kind,
  baseUrl: providers.baseUrl,
  defaultPrice: providers.defaultPrice,
}
const modelTerms = {
  upstreamModel: models.upstreamModel,
  price: models.price,
  maxOutputTokens: models.maxOutputTokens,
  targets: models.targets,
}

type Terms = NonNullable<Awaited<ReturnType<typeof readTerms>>>

const targetsSchema = z.tuple([z.looseObject({ price: z.unknown().optional() })], z.unknown()).nullable()

/** The price that the first target has of its own, or else the model's. */
function priceOfFirst({ price, targets }: { price: string | null; targets: string | null }): string | null {
  const own = targetsSchema.parse(JSON.parse(targets ?? 'null'))?.[0].price
  return own === undefined ? price : JSON.stringify(own)
}

/** The catalog's entry for a model, as its first target; for an unlisted one, the provider that would serve it. */
async function readTerms(state: Reader, id: string, prices: PriceBook, now: number) {
  const listed = await query(state)
    .select({ ...providerTerms, ...modelTerms })
    .from(models)
    .innerJoin(providers, eq(providers.id, models.providerId))
    .where(and(eq(models.id, id), eq(models.deleted, 0), eq(providers.deleted, 0)))
    .get()
  if (listed !== undefined) return { ...listed, price: priceOfFirst(listed) }
  const serving = await query(state)
    .select(providerTerms)
    .from(providers)
    .where(and(eq(providers.deleted, 0), eq(providers.allowUnlistedModels, 1)))
    .orderBy(providers.position, providers.id)
  const named = namedProviders(id, serving)
  const [model, among] = [named?.model ?? id, named?.providers ?? serving]
  await prices.load()
  const chosen =
    among.find((provider) => prices.lists({ upstreamModel: model, provider: pricedProvider(provider) }, now)) ??
    among[0]
  return chosen && { ...chosen, upstreamModel: model, price: null, maxOutputTokens: null }
}

export function priceRoutes({ state, clock }: PriceDependencies) {
  const prices = new PriceBook()
  return new Elysia({ name: 'price' }).use(conventions).get(
    '/v1/catalog/models/:id/price',
    async ({ params: { id } }) => {
      const row = await readTerms(state, id, prices, clock.now())
      if (row === undefined) throw new Failure('not_found', { message: 'No provider answers for such a model' })
      await prices.load()
      return shownTerms(prices, id, row, clock.now())
    },
    {
      access: 'catalog:read',
      params: z.object({ id: z.string().min(1).max(200) }),
      response: shownTermsSchema,
      detail: {
        tags: ['Catalog'],
        summary: "Returns a model's price and its source; a slash in the id is written %2F",
      },
    },
  )
}

function shownTerms(prices: PriceBook, id: string, row: Terms, now: number): z.infer<typeof shownTermsSchema> {
  const model: PricedModel = {
    upstreamModel: row.upstreamModel ?? id,
    provider: pricedProvider(row),
    listed: { price: compilePriceText(row.price, 'operator'), maxOutputTokens: row.maxOutputTokens },
  }
  const { price, contextWindow, maxOutputTokens } = prices.terms(model, now)
  return {
    model: id,
    provider: row.name,
    upstream_model: model.upstreamModel,
    price: price === null ? null : showPrice(price),
    context_window: contextWindow,
    max_output_tokens: maxOutputTokens,
  }
}
