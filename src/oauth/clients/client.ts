/** Applications: public clients, registered beforehand (oauth/README.md; names of RFC 7591 section 2). */
import { z } from 'zod'
import { nameText } from '../../identity/free-text.ts'
import type { oauthClients } from '../../store/schema/ledger/oauth.ts'
import { redirectUriFault } from '../authorize/redirect-uri.ts'
import { isScope, readScope, scopes, writeScope } from '../scope.ts'

export const clientStatuses = ['active', 'deactivated'] as const
export type ClientStatus = (typeof clientStatuses)[number]

export type Client = typeof oauthClients.$inferSelect

/** All that there are here. */
export const grantTypes = ['authorization_code', 'refresh_token'] as const

export const clientSchema = z.object({
  client_id: z.uuid(),
  client_name: z.string(),
  redirect_uris: z.array(z.string()),
  scope: z.string().describe('The scopes it may ask for, separated by spaces'),
  grant_types: z.array(z.enum(grantTypes)),
  response_types: z.array(z.literal('code')),
  token_endpoint_auth_method: z.literal('none'),
  client_id_issued_at: z.number().int().describe('Seconds since the epoch'),
  status: z.enum(clientStatuses),
  created_by: z.string(),
  version: z.number().int(),
})
export type ClientRecord = z.infer<typeof clientSchema>

const redirectUri = z.string().superRefine((text, context) => {
  const message = redirectUriFault(text)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

const scopeText = z
  .string()
  .max(1000)
  .refine((text) => readScope(text)?.every(isScope) ?? false, `Name one or more of ${scopes.join(', ')}`)
  .transform((text) => writeScope(readScope(text) ?? []))

/** What a client is by its nature may be said, and only as it is. */
const fixed = {
  grant_types: z
    .array(z.enum(grantTypes))
    .refine((types) => new Set(types).size === grantTypes.length, `Every client has ${grantTypes.join(' and ')}`)
    .optional(),
  response_types: z.tuple([z.literal('code')]).optional(),
  token_endpoint_auth_method: z.literal('none').optional(),
}

const registered = {
  client_name: nameText(100),
  redirect_uris: z
    .array(redirectUri)
    .min(1)
    .max(20)
    .transform((uris) => [...new Set(uris)]),
  scope: scopeText,
}

export const newClientBody = z.strictObject({ ...registered, ...fixed })
export const clientChanges = z.strictObject({ ...z.object(registered).partial().shape, ...fixed })

export const clientRecord = (client: Client): ClientRecord => ({
  client_id: client.id,
  client_name: client.name,
  redirect_uris: [...client.redirectUris],
  scope: writeScope(client.scope),
  grant_types: [...grantTypes],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  client_id_issued_at: Math.floor(client.createdAt / 1000),
  status: client.deactivatedAt === null ? 'active' : 'deactivated',
  created_by: client.createdBy,
  version: client.version,
})
