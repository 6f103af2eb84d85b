/** Providers as records: what one may hold when it is written, and what of it is shown, which is no credential. */
import { z } from 'zod'
import { idParams, resource, secret } from '../api/resource.ts'
import { Failure } from '../failure.ts'
import { targetLimit } from './catalog/target-strategy.ts'
import { headersSchema } from './headers.ts'
import { providerKinds } from './kinds/index.ts'
import { presetNamed, presets, unknownPreset } from './presets/presets.ts'
import { priceRecordSchema } from './prices/price-record.ts'
import { recordName } from './record-name.ts'
import { timeoutFlags } from './timeout-flags.ts'

/** Visible characters, or a JSON object, which only some kinds take. */
const apiKeyForm = /^(?:[\x21-\x7e]+|\s*\{[\s\x20-\x7e]*\}\s*)$/

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
  .max(8192)
  .regex(apiKeyForm, 'Write 1 to 8192 visible ASCII characters without spaces')
  .describe(
    "Its API key, kept encrypted and never shown; for bedrock ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN], or an API key; for vertex the JSON key of a service account, or none for the account of the gateway's host",
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
  .describe("Where it is reached; if left out: its kind's own address, for bedrock that of the header region")

const name = recordName.describe('What bindings, access policies and the prefix of a model name it by')
const presetNames = presets.map((preset) => preset.name)
const unlisted = z
  .boolean()
  .describe(
    'Whether it serves models that the catalog does not list: NAME/MODEL, and a bare MODEL that its price table knows. A preset does unless it is told not to',
  )
const defaultPrice = priceRecordSchema.describe('The price of models that have no other')

export const createProviderBody = z.strictObject({
  name: name.optional().meta({ description: `${name.description}; if left out: the name of the preset` }),
  preset: z
    .enum(presetNames, { error: ({ input }) => unknownPreset(typeof input === 'string' ? input : '') })
    .describe('A known service, for which a key is enough: it gives kind, name, and allows unlisted models')
    .optional(),
  kind: z
    .enum([...providerKinds.keys()])
    .describe(
      'Which API it has, where no preset says it; openai with a base_url for any server that speaks its language',
    )
    .optional(),
  base_url: baseUrl.optional(),
  api_key: apiKey.optional(),
  more_api_keys: moreApiKeys.optional(),
  headers: headersSchema.optional(),
  allow_unlisted_models: unlisted.optional(),
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

/** What a preset says, where the body does not. */
export function withPreset({
  preset: presetName,
  name,
  kind,
  allow_unlisted_models: unlisted,
}: Pick<CreateProvider, 'preset' | 'name' | 'kind' | 'allow_unlisted_models'>) {
  const preset = presetName === undefined ? undefined : presetNamed(presetName)
  if (preset !== undefined && kind !== undefined) {
    throw wrong('kind', 'The preset says the kind: leave one of both out')
  }
  const known = { name: name ?? preset?.name, kind: kind ?? preset?.kind.kind }
  if (known.kind === undefined) throw wrong('preset', 'Give a preset, or the kind')
  if (known.name === undefined) throw wrong('name', 'Give a name: only a preset has one')
  return { name: known.name, kind: known.kind, unlisted: unlisted ?? preset !== undefined }
}

const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

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
    default_price: { json: '{"input_per_million": 1.5, "output_per_million": 6}' },
  },
})
