/** SCIM tokens as records, for the routes and the commands. */
import { z } from 'zod'
import { refersTo } from '../../api/resource.ts'
import { nameText } from '../../identity/free-text.ts'

export const scimTokenSchema = z.object({
  id: z.uuid(),
  identity_provider_id: z.uuid(),
  name: z.string(),
  hint: z.string().describe('The first characters of the secret'),
  status: z.enum(['active', 'revoked']),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable(),
})

export const newScimTokenBody = z.strictObject({
  identity_provider_id: z
    .uuid()
    .meta(refersTo('/v1/identity-providers'))
    .describe('The identity provider whose people and groups it manages'),
  name: nameText(100).describe('What it is called'),
})

/** As far as commands need a description. */
export const scimTokens = {
  path: '/v1/scim-tokens',
  plural: 'scim_tokens',
  columns: ['id', 'name', 'identity_provider_id', 'status', 'last_used_at'],
  summaries: {
    list: 'List SCIM tokens, in the order they were made, without their secrets',
    create: 'Make a SCIM token; its secret is shown once',
    delete: 'Revoke a SCIM token: it ends at once',
  },
}
