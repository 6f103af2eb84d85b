/** Access policies as records: which models and providers the tokens that name one may use, and how fast. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, refersTo, resource } from '../../api/resource.ts'
import { identified, limitName, per, rateFields, rateRecord, versioned } from './limit-fields.ts'

const names = z.array(z.string().min(1).max(200)).min(1).max(200)

const scope = z
  .enum(['token', 'shared'])
  .describe('Whether each token that names it has these rates by itself, or all of them have them together')

const fields = {
  ...rateFields,
  models: names.describe('A model or * glob that may be used').nullable().optional(),
  providers: names
    .describe('A provider that may be used')
    .meta(refersTo('/v1/catalog/providers', 'name'))
    .nullable()
    .optional(),
}

const changed = z.object({ ...fields, scope: scope.optional() })

export const policyFields = changed.extend({ per: per.unwrap().optional() })

export const accessPolicyResource = resource({
  name: 'access-policy',
  one: 'access policy',
  plural: 'access_policies',
  path: '/v1/access-policies',
  tag: 'Access policies',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Limit the tokens that name it: requests and tokens a minute, models, providers',
  summaries: {
    list: 'List access policies, in the order they were made',
    get: 'Show one access policy',
    create: 'Make an access policy',
    update: 'Change an access policy',
    delete: 'Delete an access policy that no token in force names',
  },
  record: z.object({
    ...identified,
    ...rateRecord,
    scope,
    models: z.array(z.string()).nullable(),
    providers: z.array(z.string()).nullable(),
    per: z.string().nullable(),
    ...versioned,
  }),
  create: z.strictObject({ name: limitName, ...fields, scope: scope.default('token'), per }),
  update: z.strictObject({ name: limitName.optional(), ...changed.shape }),
  filters: z.strictObject({ name: nameFilter }),
  columns: ['id', 'name', 'requests_per_minute', 'tokens_per_minute', 'scope', 'per', 'models', 'providers'],
})
