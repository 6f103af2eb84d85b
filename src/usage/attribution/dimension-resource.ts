/** Dimensions of attribution as records (usage/README.md, Attribution). */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, resource } from '../../api/resource.ts'
import { identified, versioned } from '../api/limit-fields.ts'
import { longestRawValue, longestValue, sourceKinds } from './dimension.ts'

/** Headers that hold secrets: a value stands in events. */
const secretHeaders: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'x-goog-api-key', 'api-key'],
])
const headerName = /^[a-z0-9][a-z0-9-]{0,63}$/

const sourceSchema = z
  .strictObject({
    kind: z
      .enum(sourceKinds)
      .describe(
        'Headers and metadata of the body count for tokens with metadata_trust caller; a claim is one that the workload identity names in its attribution',
      ),
    key: z.string().min(1).max(64).describe('The name in the metadata, of the header or of the claim'),
  })
  .refine(({ kind, key }) => kind !== 'header' || headerName.test(key), {
    path: ['key'],
    message: 'Write the name of the header in small letters, digits and hyphens, for example x-customer-id',
  })
  .refine(({ kind, key }) => kind !== 'header' || !secretHeaders.has(key), {
    path: ['key'],
    message: 'This header holds a secret, and values stand in events: name another',
  })
  .describe('Where the value of a request comes from')

const values = z
  .array(z.string().max(longestRawValue, { abort: true }).trim().normalize().min(1).max(longestValue))
  .min(1)
  .max(1000)
  .nullable()
  .describe('The allowed values; null allows every value')
const maxValues = z
  .number()
  .int()
  .min(1)
  .max(100_000)
  .describe('The most values that a budget for each value keeps apart in a window')
const required = z.boolean().describe('Whether a request without a value is refused')

export const dimensionFields = z.object({ source: sourceSchema, values, max_values: maxValues, required }).partial()

export const dimensionName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,31}$/, 'Begin with a small letter, then small letters, digits and _, at most 32 in all')

export const dimensionResource = resource({
  name: 'dimension',
  one: 'dimension',
  plural: 'dimensions',
  path: '/v1/attribution-dimensions',
  tag: 'Attribution dimensions',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about:
    'Declare what spend is attributed to, such as customer or feature, for charts, reports and limits for each value',
  summaries: {
    list: 'List dimensions of attribution, in the order they were made',
    get: 'Show one dimension of attribution',
    create: 'Declare a dimension of attribution',
    update: 'Change a dimension of attribution; its name stays',
    delete: 'Delete a dimension of attribution that no limit is for each value of',
  },
  record: z.object({
    ...identified,
    source: z.object({ kind: z.enum(sourceKinds), key: z.string() }),
    values: z.array(z.string()).nullable(),
    max_values: z.number().int(),
    required: z.boolean(),
    ...versioned,
  }),
  create: z.strictObject({
    name: dimensionName.describe('What events, reports and limits call it'),
    source: sourceSchema,
    values: values.default(null),
    max_values: maxValues.default(10_000),
    required: required.default(false),
  }),
  update: z.strictObject(dimensionFields.shape),
  filters: z.strictObject({ name: nameFilter }),
  columns: ['id', 'name', 'source', 'values', 'max_values', 'required'],
  flags: {
    'source.kind': { name: 'source' },
    'source.key': { name: 'source-key' },
  },
})
