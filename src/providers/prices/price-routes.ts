/** `GET /v1/catalog/models/{id}/price`: what a model costs and where that is said, as gateways reckon it. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { PriceBook, type PricedModel } from './price-book.ts'
import { compilePriceText, shownPriceSchema, showPrice } from './price-record.ts'

interface PriceDependencies {
  state: Pick<Database, 'read'>
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

interface TermsRow {
  name: string
  id: string
  kind: string
  base_url: string | null
  default_price: string | null
  upstream_model: string | null
  price: string | null
  max_output_tokens: number | null
}

const fields = `p.name, p.id, p.kind, p.base_url, p.default_price`
const listedQuery = `select ${fields}, m.upstream_model, m.price, m.max_output_tokens
  from models m join providers p on p.id = m.provider_id where m.id = ? and m.deleted = 0 and p.deleted = 0`
/** The provider that answers for what the catalog does not list: the first one made. */
const unlistedQuery = `select ${fields}, null as upstream_model, null as price, null as max_output_tokens
  from providers p where p.deleted = 0 and p.allow_unlisted_models = 1 order by p.position, p.id limit 1`

export function priceRoutes({ state, clock }: PriceDependencies) {
  const prices = new PriceBook()
  return new Elysia({ name: 'price' }).use(conventions).get(
    '/v1/catalog/models/:id/price',
    async ({ params: { id } }) => {
      const [listed] = await state.read<TermsRow>(listedQuery, [id])
      const row = listed ?? (await state.read<TermsRow>(unlistedQuery))[0]
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
        summary: 'What a model costs, and where that is said; a slash in its id is written %2F',
      },
    },
  )
}

function shownTerms(prices: PriceBook, id: string, row: TermsRow, now: number): z.infer<typeof shownTermsSchema> {
  const model: PricedModel = {
    upstreamModel: row.upstream_model ?? id,
    provider: {
      id: row.id,
      kind: row.kind,
      baseUrl: row.base_url,
      defaultPrice: compilePriceText(row.default_price, 'provider'),
    },
    listed: { price: compilePriceText(row.price, 'operator'), maxOutputTokens: row.max_output_tokens },
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
