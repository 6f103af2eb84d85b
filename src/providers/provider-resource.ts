/** Providers as records: what one may hold when it is written, and what of it is shown, which is no credential. */
import { z } from 'zod'
import { idParams, resource, secret } from '../api/resource.ts'
import { targetLimit } from './catalog/target-strategy.ts'
import { headersSchema } from './headers.ts'
import { providerKinds } from './kinds/index.ts'
import { priceRecordSchema } from './prices/price-record.ts'
import { recordName } from './record-name.ts'
import { timeoutFlags } from './timeout-flags.ts'

const apiKeyForm = /^[\x21-\x7e]+$/

const seconds = (most: number, meaning: string) => z.number().int().min(1).max(most).describe(meaning).optional()

export const timeoutsSchema = z
  .strictObject({
    connect_seconds: seconds(600, 'How long a connection may take'),
    first_byte_seconds: seconds(3600, 'How long its answer may take to begin'),
    idle_seconds: seconds(3600, 'How long it may be silent'),
    total_seconds: seconds(86_400, 'How long its answer may take in all'),
  })
  .describe('What holds for this provider instead of the settings')

const apiKey = z
  .string()
  .max(4096)
  .regex(apiKeyForm, 'Write 1 to 4096 visible ASCII characters without spaces')
  .describe(
    'Its API key, kept encrypted and never shown; for bedrock ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN], or an API key',
  )
  .meta(secret)
/** The keys of a text, which blanks separate. */
export const keysOf = (text: string): string[] => text.split(/\s+/).filter((key) => key !== '')

const moreApiKeys = z
  .string()
  .max(65_536)
  .regex(/^[\x21-\x7e\s]+$/, 'Write visible ASCII characters, with blanks between the keys')
  .refine((text) => keysOf(text).length < targetLimit, `Give at most ${targetLimit - 1} keys`)
  .refine((text) => new Set(keysOf(text)).size === keysOf(text).length, 'A key is given twice')
  .describe(
    'Further API keys of the same account, with blanks between them: used in turn, and one that is refused rests',
  )
  .meta(secret)
const baseUrl = z
  .string()
  .max(2048)
  .describe("Where it is reached; absent: its kind's own address, for bedrock that of the header region")

const name = recordName.describe('What bindings and access policies name it by')
const unlisted = z
  .boolean()
  .describe('Whether it serves models that the catalog does not list; the first provider made that does is used')
const defaultPrice = priceRecordSchema.describe('The price of models that have no other')

const createProviderBody = z.strictObject({
  name,
  kind: z.enum([...providerKinds.keys()]).describe('Which API it has'),
  base_url: baseUrl.optional(),
  api_key: apiKey.optional(),
  more_api_keys: moreApiKeys.optional(),
  headers: headersSchema.optional(),
  allow_unlisted_models: unlisted.default(false),
  default_price: defaultPrice.optional(),
  timeouts: timeoutsSchema.optional(),
})

const updateProviderBody = z.strictObject({
  name: name.optional(),
  base_url: baseUrl.nullable().optional(),
  api_key: apiKey.nullable().optional(),
  more_api_keys: moreApiKeys.nullable().optional(),
  headers: headersSchema.nullable().optional(),
  allow_unlisted_models: unlisted.optional(),
  default_price: defaultPrice.nullable().optional(),
  timeouts: timeoutsSchema.nullable().optional(),
})

export const providerSchema = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  base_url: z.string().nullable(),
  has_api_key: z.boolean(),
  api_key_count: z.number().int(),
  header_names: z.array(z.string()),
  allow_unlisted_models: z.boolean(),
  default_price: priceRecordSchema.nullable(),
  timeouts: timeoutsSchema.nullable(),
  version: z.number().int(),
  created_at: z.string(),
})

export type CreateProvider = z.infer<typeof createProviderBody>
export type UpdateProvider = z.infer<typeof updateProviderBody>

export const providerResource = resource({
  name: 'provider',
  one: 'provider',
  plural: 'providers',
  path: '/v1/catalog/providers',
  tag: 'Catalog',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Manage the providers that answer, their addresses and credentials',
  summaries: {
    list: 'List providers, in the order they were made',
    get: 'Show one provider, without its credentials',
    create: 'Add a provider',
    update: 'Change a provider; a new API key reaches every gateway',
    delete: 'Delete a provider that no model names, with its credentials',
  },
  notes: { update: 'null takes it away' },
  record: providerSchema,
  create: createProviderBody,
  update: updateProviderBody,
  columns: ['id', 'name', 'kind', 'base_url', 'has_api_key', 'allow_unlisted_models'],
  flags: {
    ...timeoutFlags,
    base_url: { hint: 'URL' },
    default_price: { json: true },
  },
})
