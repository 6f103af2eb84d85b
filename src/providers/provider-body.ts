/**
 * What a provider's record may hold when it is written (providers/README.md), and what of it is shown: no credential.
 */
import { z } from 'zod'
import { recordName } from './catalog/catalog-change.ts'
import { headersSchema } from './headers.ts'
import { providerKinds } from './kinds/index.ts'
import { priceRecordSchema } from './prices/price-record.ts'

const apiKeyForm = /^[\x21-\x7e]+$/

const seconds = (most: number) => z.number().int().min(1).max(most).optional()

export const timeoutsSchema = z
  .strictObject({
    connect_seconds: seconds(600),
    first_byte_seconds: seconds(3600),
    idle_seconds: seconds(3600),
    total_seconds: seconds(86_400),
  })
  .describe('What holds for this provider instead of the settings')

const apiKey = z
  .string()
  .max(4096)
  .regex(apiKeyForm, 'Write 1 to 4096 visible ASCII characters without spaces')
  .describe(
    'Kept encrypted and never shown; for bedrock ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN], or its API key',
  )
const baseUrl = z
  .string()
  .max(2048)
  .describe("Where it is reached; absent: its kind's own address, for bedrock that of the header region")

export const createProviderBody = z.strictObject({
  name: recordName.describe('What bindings and access policies name it by'),
  kind: z.enum([...providerKinds.keys()]),
  base_url: baseUrl.optional(),
  api_key: apiKey.optional(),
  headers: headersSchema.optional(),
  allow_unlisted_models: z
    .boolean()
    .default(false)
    .describe('Whether it serves models that the catalog does not list; the first provider made that does is used'),
  default_price: priceRecordSchema.optional().describe('The price of models that have no other'),
  timeouts: timeoutsSchema.optional(),
})

export const updateProviderBody = z.strictObject({
  name: recordName.optional(),
  base_url: baseUrl.nullable().optional(),
  api_key: apiKey.nullable().optional(),
  headers: headersSchema.nullable().optional(),
  allow_unlisted_models: z.boolean().optional(),
  default_price: priceRecordSchema.nullable().optional(),
  timeouts: timeoutsSchema.nullable().optional(),
})

export const providerSchema = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  base_url: z.string().nullable(),
  has_api_key: z.boolean(),
  header_names: z.array(z.string()),
  allow_unlisted_models: z.boolean(),
  default_price: priceRecordSchema.nullable(),
  timeouts: timeoutsSchema.nullable(),
  version: z.number().int(),
  created_at: z.string(),
})

export type CreateProvider = z.infer<typeof createProviderBody>
export type UpdateProvider = z.infer<typeof updateProviderBody>
