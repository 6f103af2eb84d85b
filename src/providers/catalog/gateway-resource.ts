/** Gateways as records: what runtime tokens are bound to, and what holds at each of these gateways. */
import { z } from 'zod'
import { idParams, refersTo, resource } from '../../api/resource.ts'
import { recordName } from '../record-name.ts'

const fields = {
  name: recordName.describe('What it is called'),
  spend_owner: z
    .string()
    .regex(/^(organization|(user|team):[0-9a-f-]{36})$/, 'Write organization, user:<id> or team:<id>')
    .describe("Whose spend its requests are; if left out: each token's user, else its owner"),
  prompt_caching: z.boolean().describe('Whether cache_control of chat and responses is translated for the provider'),
  providers: z
    .array(recordName)
    .min(1)
    .max(100)
    .refine((names) => new Set(names).size === names.length, 'A provider is named twice')
    .describe('The names of those it may use; if left out: all')
    .meta(refersTo('/v1/catalog/providers', 'name')),
}

export const createGatewayBody = z.strictObject({
  name: fields.name,
  spend_owner: fields.spend_owner.optional(),
  prompt_caching: fields.prompt_caching.default(false),
  providers: fields.providers.optional(),
})

export const updateGatewayBody = z.strictObject({
  name: fields.name.optional(),
  spend_owner: fields.spend_owner.nullable().optional(),
  prompt_caching: fields.prompt_caching.optional(),
  providers: fields.providers.nullable().optional(),
})

export const gatewaySchema = z.object({
  id: z.string(),
  name: z.string(),
  spend_owner: z.string().nullable(),
  prompt_caching: z.boolean(),
  providers: z.array(z.string()).nullable(),
  version: z.number().int(),
  created_at: z.string(),
})

export const gatewayResource = resource({
  name: 'gateway',
  one: 'gateway',
  plural: 'gateways',
  path: '/v1/gateways',
  tag: 'Gateways',
  access: { read: 'catalog:read', write: 'catalog:write' },
  params: idParams,
  about: 'Serve a gateway; manage the records of gateways',
  summaries: {
    list: 'List gateways, in the order they were made',
    get: 'Show one gateway',
    create: 'Make the record of a gateway, to which a runtime token is then bound',
    update: 'Change the record of a gateway',
    delete: 'Delete a gateway to which no token in force is bound',
  },
  notes: { update: 'null takes a field back to what holds without it' },
  record: gatewaySchema,
  create: createGatewayBody,
  update: updateGatewayBody,
  columns: ['id', 'name', 'spend_owner', 'prompt_caching', 'providers'],
  flags: {
    spend_owner: { hint: 'organization|team:UUID|user:UUID' },
  },
})
