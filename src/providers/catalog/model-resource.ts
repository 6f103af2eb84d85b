/** Models as records: which provider answers for one, under which name, at what price, and what is tried after it. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { refersTo, resource } from '../../api/resource.ts'
import { modelFamilies } from '../../languages/families.ts'
import { translationManners } from '../../languages/translation-language.ts'
import { validModelName } from '../model-name.ts'
import { priceDate, priceRecordSchema, priceSource } from '../prices/price-record.ts'
import { targetLimit, targetStrategies } from './target-strategy.ts'

const fallbackLimit = 8

/** An id is what callers ask for and globs are matched against; it may hold slashes, in a path written %2F. */
const recordedId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}$/, 'Write 1 to 200 letters, digits and . _ : @ + / -')
export const modelId = recordedId.refine(...validModelName).describe('What callers ask for; it may hold slashes')
const modelParams = z.object({ id: recordedId })

const upstreamModel = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'Write 1 to 200 visible ASCII characters without spaces')
  .refine(...validModelName)

export const targetSchema = z.strictObject({
  provider: z
    .string()
    .min(1)
    .max(200)
    .describe('The provider that answers, by its name or id')
    .meta(refersTo('/v1/catalog/providers', 'name')),
  upstream_model: upstreamModel.describe("The provider's name for the model; if left out: the model's id").optional(),
  weight: z
    .number()
    .min(0)
    .max(1_000_000)
    .describe('For the strategy weighted: its part of the requests; 0 leaves it for when no other can be used')
    .default(1),
  tier: z.number().int().min(1).max(targetLimit).describe('A tier is used when none of a lower one can be').default(1),
  price: priceRecordSchema
    .describe("Dollars a million tokens at this target; if left out: the model's price")
    .optional(),
})

/** As the state has it. */
export const storedTargetSchema = targetSchema.omit({ provider: true }).extend({ provider_id: z.string() })
export type StoredTarget = z.infer<typeof storedTargetSchema>

const fields = {
  provider_id: z
    .uuid()
    .describe('The provider that answers for it; if left out: its targets say it')
    .meta(refersTo('/v1/catalog/providers')),
  targets: z
    .array(targetSchema)
    .min(1)
    .max(targetLimit)
    .describe('Providers that answer for it, instead of provider_id and upstream_model'),
  strategy: z
    .enum(targetStrategies)
    .describe(
      'Which target of a tier comes first: priority by their order, weighted, least_busy, lowest_cost or lowest_latency; if left out: priority',
    ),
  upstream_model: upstreamModel.describe("The provider's name for it; if left out: the id"),
  families: z
    .array(z.enum(modelFamilies))
    .min(1)
    .refine(distinct, 'A family is named twice')
    .describe("Those it serves; if left out: all that its provider's kind does"),
  price: priceRecordSchema.describe('Dollars a million tokens; if left out: what the embedded table says'),
  max_output_tokens: z.number().int().min(1).max(100_000_000).describe('The most tokens that it writes'),
  fallbacks: z
    .array(modelId)
    .max(fallbackLimit)
    .refine(distinct, 'A model is named twice')
    .describe('Models that are tried after it, in this order')
    .meta(refersTo('/v1/catalog/models')),
  shadow: z
    .strictObject({
      provider_id: z.uuid().describe('The provider that gets them').meta(refersTo('/v1/catalog/providers')),
      upstream_model: upstreamModel
        .optional()
        .describe("That provider's name for the model; if left out: the same name"),
      share: z.number().gt(0).max(100).describe('Percent of the requests'),
    })
    .describe('Where a share of its requests is sent a second time, for comparison; no caller sees those answers'),
  translation: z
    .enum(translationManners)
    .describe(
      'For a provider of another language: strict refuses what it lacks, lenient leaves out and notes what answers do not need; if left out: lenient',
    ),
}

export const createModelBody = z.strictObject({
  id: modelId,
  provider_id: fields.provider_id.optional(),
  upstream_model: fields.upstream_model.optional(),
  families: fields.families.optional(),
  price: fields.price.optional(),
  max_output_tokens: fields.max_output_tokens.optional(),
  fallbacks: fields.fallbacks.optional(),
  translation: fields.translation.optional(),
  shadow: fields.shadow.optional(),
  targets: fields.targets.optional(),
  strategy: fields.strategy.optional(),
})

export const updateModelBody = z.strictObject({
  provider_id: fields.provider_id.optional(),
  upstream_model: fields.upstream_model.nullable().optional(),
  families: fields.families.nullable().optional(),
  price: fields.price.nullable().optional(),
  max_output_tokens: fields.max_output_tokens.nullable().optional(),
  fallbacks: fields.fallbacks.nullable().optional(),
  translation: fields.translation.nullable().optional(),
  shadow: fields.shadow.nullable().optional(),
  targets: fields.targets.optional(),
  strategy: fields.strategy.nullable().optional(),
})

function distinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length
}

export const modelFilters = z.strictObject({
  provider_id: fields.provider_id.describe('Only models of this provider').optional(),
  name: nameFilter.describe('Only models with this in their id'),
})

export const effectivePriceSchema = z.object({
  provider: z.string(),
  upstream_model: z.string(),
  price: priceRecordSchema
    .nullable()
    .describe('Null where nobody states a price: requests of tokens with a budget are refused there'),
  source: priceSource.nullable(),
  date: priceDate,
})
export type EffectivePrice = z.infer<typeof effectivePriceSchema>

export const modelSchema = z.object({
  id: z.string(),
  provider_id: z.string(),
  upstream_model: z.string(),
  families: z.array(z.enum(modelFamilies)).nullable(),
  price: priceRecordSchema.nullable().describe('What was given; null where the table or the provider says it'),
  effective_prices: z.array(effectivePriceSchema).describe('What each target costs now, in the order of the targets'),
  max_output_tokens: z.number().int().nullable(),
  fallbacks: z.array(z.string()),
  translation: z.enum(translationManners),
  shadow: fields.shadow.nullable(),
  targets: z.array(targetSchema).describe('All that may answer; the first is also in provider_id and upstream_model'),
  strategy: z.enum(targetStrategies),
  version: z.number().int(),
  created_at: z.string(),
})

export const modelResource = resource({
  name: 'model',
  one: 'model',
  plural: 'models',
  path: '/v1/catalog/models',
  tag: 'Catalog',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: modelParams,
  about: 'Manage which provider answers for a model, and what is tried after it',
  summaries: {
    list: 'List models, by their ids',
    get: 'Show one model',
    create: 'List a model in the catalog',
    update: 'Change a model',
    delete: 'Take a model that no other falls back to out of the catalog',
  },
  notes: {
    get: 'a slash in its id is written %2F',
    update: 'null takes a field back to what holds without it',
  },
  record: modelSchema,
  create: createModelBody,
  update: updateModelBody,
  filters: modelFilters,
  columns: ['id', 'provider_id', 'upstream_model', 'max_output_tokens', 'fallbacks'],
  flags: {
    provider_id: { name: 'provider' },
    price: { json: '{"input_per_million": 1.5, "output_per_million": 6}' },
    shadow: { json: '{"provider_id": "ID", "share": 5}' },
    targets: { json: '{"provider": "openai", "weight": 2}' },
    fallbacks: { hint: 'ID' },
  },
})
