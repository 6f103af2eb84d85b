/**
 * `POST /v1/catalog/providers/{id}/test`: asks a provider once for each thing, and says what works.
 * `/v1/catalog/failed-provider-tests`: the providers whose last test failed.
 */
import { and, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { idParams } from '../../api/resource.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import { Failure } from '../../failure.ts'
import { query } from '../../store/query.ts'
import { models } from '../../store/schema/state/catalog.ts'
import type { CatalogCall, CatalogDependencies } from '../catalog/catalog-change.ts'
import { providerKinds } from '../kinds/index.ts'
import { isModelName, validModelName } from '../model-name.ts'
import { PriceBook } from '../prices/price-book.ts'
import { compilePriceText } from '../prices/price-record.ts'
import type { Provider } from '../provider.ts'
import { heldCredentials, type ProviderRow, requireProvider } from '../provider-routes.ts'
import { failedTests, failedTestsReply, keepTest } from './last-tests.ts'
import { trialSteps, tryProvider } from './trial.ts'

const trialBody = z.strictObject({
  model: z
    .string()
    .min(1)
    .refine(...validModelName)
    .describe("The provider's name of the model to ask; if left out: one of the catalog, or the cheapest that it lists")
    .optional(),
})

const trialSchema = z.object({
  provider: z.string(),
  model: z.string().nullable().describe('The model that was asked'),
  ok: z.boolean().describe('Whether nothing failed'),
  steps: z.array(
    z.object({
      step: z.enum(trialSteps),
      ok: z.boolean().nullable().describe('Null if it was not tried'),
      message: z.string(),
      milliseconds: z.number().int(),
    }),
  ),
})

export function trialRoutes(deps: CatalogDependencies) {
  const prices = new PriceBook()
  return new Elysia({ name: 'trial' })
    .use(conventions)
    .post(
      '/v1/catalog/providers/:id/test',
      ({ params: { id }, body, principal, requestId }) => test(deps, prices, { principal, requestId }, id, body),
      {
        access: 'catalog:write',
        params: idParams,
        body: trialBody,
        response: trialSchema,
        detail: {
          tags: ['Catalog'],
          summary: 'Asks a provider for its models, a short answer and a short stream, and says what works',
        },
      },
    )
    .get('/v1/catalog/failed-provider-tests', () => failedTests(deps), {
      access: 'catalog:read',
      response: failedTestsReply,
      detail: {
        tags: ['Catalog'],
        summary: 'Lists the providers whose last connection test failed and that have answered no request since',
      },
    })
}

async function test(
  deps: CatalogDependencies,
  prices: PriceBook,
  call: CatalogCall,
  id: string,
  body: z.infer<typeof trialBody>,
): Promise<z.infer<typeof trialSchema>> {
  const row = await requireProvider(deps, id)
  const kind = providerKinds.get(row.kind)
  if (kind === undefined) throw new Failure('conflict', { message: 'This version does not know the kind of provider' })
  await prices.load()
  const provider = await openedProvider(deps, row)
  const asked = body.model ?? (await listedModel(deps, id))
  const { model, steps } = await tryProvider({ provider, kind, model: asked, fetch, clock: deps.clock, prices })
  const ok = steps.every((step) => step.ok !== false)
  await record(deps, call, { id, name: row.name, model, ok })
  return { provider: row.name, model, ok, steps }
}

async function openedProvider(deps: CatalogDependencies, row: ProviderRow): Promise<Provider> {
  const { credentials } = await heldCredentials(deps, row)
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    baseUrl: row.baseUrl,
    ...credentials,
    allowUnlistedModels: row.allowUnlistedModels === 1,
    defaultPrice: compilePriceText(row.defaultPrice, 'provider'),
  }
}

/** The provider's name of a model that the catalog lists for chats; null if there is none. */
async function listedModel({ state }: CatalogDependencies, providerId: string): Promise<string | null> {
  const rows = await query(state)
    .select({ id: models.id, upstreamModel: models.upstreamModel, families: models.families })
    .from(models)
    .where(and(eq(models.providerId, providerId), eq(models.deleted, 0)))
    .orderBy(models.id)
    .limit(100)
  const answersChats = ({ families }: { families: string | null }) =>
    families === null || ['chat', 'messages', 'gemini', 'responses'].some((family) => families.includes(`"${family}"`))
  const found = rows.find(answersChats)
  const name = found === undefined ? null : (found.upstreamModel ?? found.id)
  return name !== null && isModelName(name) ? name : null
}

/** A test costs money beside every budget, so the log says who made it. */
async function record(
  { recorder, clock, newId }: CatalogDependencies,
  { principal, requestId }: CatalogCall,
  { id, name, model, ok }: { id: string; name: string; model: string | null; ok: boolean },
): Promise<void> {
  const details = { provider_id: id, name, model, ok }
  const event = controlPlaneEvent({
    ...{ type: 'catalog.tested', principal, requestId, teamId: null, details, configVersion: 0, clock, newId },
  })
  await recorder.change({ event, state: [], ledger: [keepTest(id, { ok, at: clock.now() })] })
}
